package pantry

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"example.com/pantry/units"
)

var today = time.Date(2023, time.May, 1, 0, 0, 0, 0, time.UTC)

func filled(t *testing.T) *Pantry {
	t.Helper()
	p := &Pantry{}
	for _, batch := range []struct {
		product, quantity string
		days              int
	}{
		{"Flour", "1 kg", 90},
		{"milk", "1 l", 5},
		{"flour", "200 g", 2},
		{"eggs", "6", 10},
	} {
		if err := p.Store(batch.product, batch.quantity, today.AddDate(0, 0, batch.days)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestTotal(t *testing.T) {
	p := filled(t)
	cases := []struct {
		name    string
		product string
		kind    units.Kind
		want    float64
	}{
		{"adds batches", "flour", units.Mass, 1200},
		{"ignores case and spaces", "  FLOUR ", units.Mass, 1200},
		{"other kind", "milk", units.Mass, 0},
		{"unknown product", "rice", units.Mass, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := p.Total(c.product, c.kind).Amount; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestUse(t *testing.T) {
	t.Run("takes what goes off first", func(t *testing.T) {
		p := filled(t)
		if err := p.Use("flour", units.Quantity{Amount: 300, Kind: units.Mass}); err != nil {
			t.Fatal(err)
		}
		if got := p.Total("flour", units.Mass).Amount; got != 900 {
			t.Errorf("total is %v, want 900", got)
		}
		if got := p.Expiring(today, 5); !reflect.DeepEqual(got, []string{"milk"}) {
			t.Errorf("expiring: %v", got)
		}
	})
	t.Run("allows to use everything", func(t *testing.T) {
		p := filled(t)
		if err := p.Use("eggs", units.Quantity{Amount: 6, Kind: units.Count}); err != nil {
			t.Error(err)
		}
	})
	t.Run("changes nothing without enough", func(t *testing.T) {
		p := filled(t)
		err := p.Use("milk", units.Quantity{Amount: 1001, Kind: units.Volume})
		if !errors.Is(err, ErrNotEnough) {
			t.Errorf("got %v, want ErrNotEnough", err)
		}
		if got := p.Total("milk", units.Volume).Amount; got != 1000 {
			t.Errorf("total is %v, want 1000", got)
		}
	})
}

func TestExpiring(t *testing.T) {
	p := filled(t)
	cases := []struct {
		name string
		days int
		want []string
	}{
		{"nothing yet", 1, nil},
		{"last day counts", 5, []string{"flour", "milk"}},
		{"each product once", 100, []string{"flour", "milk", "eggs"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := p.Expiring(today, c.days); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
