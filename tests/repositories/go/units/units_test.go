package units

import (
	"errors"
	"testing"
)

func TestParse(t *testing.T) {
	cases := []struct {
		name string
		text string
		want Quantity
	}{
		{"decimal", "1.5 kg", Quantity{1500, Mass}},
		{"no space", "250ml", Quantity{250, Volume}},
		{"upper case", "2 L", Quantity{2000, Volume}},
		{"fraction", "1/2 dl", Quantity{50, Volume}},
		{"mixed number", "2 1/2 tbsp", Quantity{37.5, Volume}},
		{"count", " 3 ", Quantity{3, Count}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.text)
			if err != nil {
				t.Fatalf("Parse(%q): %v", c.text, err)
			}
			if got != c.want {
				t.Errorf("Parse(%q) = %v, want %v", c.text, got, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", "kg", "2 stones", "1/0 kg", "1-2 g"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, got)
		}
	}
}

func TestAdd(t *testing.T) {
	sum, err := Quantity{200, Mass}.Add(Quantity{50, Mass})
	if err != nil || sum != (Quantity{250, Mass}) {
		t.Errorf("got %v, %v", sum, err)
	}
	if _, err := (Quantity{200, Mass}).Add(Quantity{1, Count}); !errors.Is(err, ErrKind) {
		t.Errorf("got %v, want ErrKind", err)
	}
}

func TestString(t *testing.T) {
	cases := []struct {
		name string
		from Quantity
		want string
	}{
		{"small mass", Quantity{999, Mass}, "999 g"},
		{"exactly a kilo", Quantity{1000, Mass}, "1 kg"},
		{"large volume", Quantity{1250, Volume}, "1.25 l"},
		{"keeps zeros before the point", Quantity{100, Volume}, "100 ml"},
		{"count", Quantity{2.5, Count}, "2.5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.from.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
