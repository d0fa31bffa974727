// Package pantry keeps track of what a kitchen holds.
package pantry

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"example.com/pantry/units"
)

// ErrNotEnough is returned when more is used than there is.
var ErrNotEnough = errors.New("not enough in the pantry")

// Batch is a quantity of a product that was bought together.
type Batch struct {
	Product  string
	Quantity units.Quantity
	BestBy   time.Time
}

// Pantry holds batches of products.
type Pantry struct {
	batches []Batch
}

// Store adds a batch and keeps batches in the order in which they go off.
func (p *Pantry) Store(product, quantity string, bestBy time.Time) error {
	parsed, err := units.Parse(quantity)
	if err != nil {
		return err
	}
	p.batches = append(p.batches, Batch{normalize(product), parsed, bestBy})
	sort.SliceStable(p.batches, func(i, j int) bool {
		return p.batches[i].BestBy.Before(p.batches[j].BestBy)
	})
	return nil
}

// Total returns how much there is of a product, counting units of one kind.
func (p *Pantry) Total(product string, kind units.Kind) units.Quantity {
	total := units.Quantity{Kind: kind}
	for _, batch := range p.batches {
		if batch.Product != normalize(product) {
			continue
		}
		if sum, err := total.Add(batch.Quantity); err == nil {
			total = sum
		}
	}
	return total
}

// Use takes a quantity of a product, from what goes off first.
//
// The pantry stays as it is if it does not hold enough.
func (p *Pantry) Use(product string, quantity units.Quantity) error {
	if p.Total(product, quantity.Kind).Amount < quantity.Amount {
		return fmt.Errorf("%s: %w", product, ErrNotEnough)
	}
	left := quantity.Amount
	kept := make([]Batch, 0, len(p.batches))
	for _, batch := range p.batches {
		if batch.Product == normalize(product) && batch.Quantity.Kind == quantity.Kind {
			taken := batch.Quantity.Amount
			if taken > left {
				taken = left
			}
			left -= taken
			batch.Quantity.Amount -= taken
			if batch.Quantity.Amount == 0 && taken > 0 {
				continue
			}
		}
		kept = append(kept, batch)
	}
	p.batches = kept
	return nil
}

// Expiring lists the products that go off within some days, each once.
func (p *Pantry) Expiring(now time.Time, days int) []string {
	limit := now.AddDate(0, 0, days)
	seen := make(map[string]bool)
	var products []string
	for _, batch := range p.batches {
		if batch.BestBy.After(limit) || seen[batch.Product] {
			continue
		}
		seen[batch.Product] = true
		products = append(products, batch.Product)
	}
	return products
}

// normalize makes the names of products comparable.
func normalize(product string) string {
	return strings.ToLower(strings.Join(strings.Fields(product), " "))
}
