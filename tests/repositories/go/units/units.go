// Package units reads, converts and writes kitchen quantities.
package units

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Kind tells what a quantity measures.
type Kind int

// The kinds of quantity, with their base units: gram, millilitre and piece.
const (
	Mass Kind = iota
	Volume
	Count
)

// Quantity is an amount in the base unit of its kind.
type Quantity struct {
	Amount float64
	Kind   Kind
}

// ErrKind is returned when quantities of different kinds are combined.
var ErrKind = errors.New("quantities of different kinds")

type unit struct {
	kind  Kind
	scale float64
}

var known = map[string]unit{
	"g":    {Mass, 1},
	"kg":   {Mass, 1000},
	"ml":   {Volume, 1},
	"dl":   {Volume, 100},
	"l":    {Volume, 1000},
	"tbsp": {Volume, 15},
	"tsp":  {Volume, 5},
	"":     {Count, 1},
}

// Parse reads a quantity such as "1.5 kg", "1/2 l", "2 1/2 tbsp" or "3".
func Parse(text string) (Quantity, error) {
	split := strings.IndexFunc(text, unicode.IsLetter)
	if split < 0 {
		split = len(text)
	}
	name := strings.ToLower(strings.TrimSpace(text[split:]))
	u, ok := known[name]
	if !ok {
		return Quantity{}, fmt.Errorf("unknown unit %q", name)
	}
	amount, err := parseNumber(text[:split])
	if err != nil {
		return Quantity{}, fmt.Errorf("quantity %q: %w", text, err)
	}
	return Quantity{Amount: amount * u.scale, Kind: u.kind}, nil
}

// parseNumber adds up the space-separated decimals and fractions of a text.
func parseNumber(text string) (float64, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("number missing")
	}
	total := 0.0
	for _, field := range fields {
		above, below, isFraction := strings.Cut(field, "/")
		value, err := strconv.ParseFloat(above, 64)
		if err != nil {
			return 0, err
		}
		if isFraction {
			divisor, err := strconv.ParseFloat(below, 64)
			if err != nil {
				return 0, err
			}
			if divisor == 0 {
				return 0, errors.New("division by zero")
			}
			value /= divisor
		}
		total += value
	}
	return total, nil
}

// Add returns the sum of two quantities of the same kind.
func (q Quantity) Add(other Quantity) (Quantity, error) {
	if q.Kind != other.Kind {
		return Quantity{}, ErrKind
	}
	return Quantity{Amount: q.Amount + other.Amount, Kind: q.Kind}, nil
}

// Scale returns the quantity multiplied by a factor.
func (q Quantity) Scale(factor float64) Quantity {
	return Quantity{Amount: q.Amount * factor, Kind: q.Kind}
}

// String writes the quantity in kilograms or litres from a thousand up.
func (q Quantity) String() string {
	small, large := "g", "kg"
	switch q.Kind {
	case Volume:
		small, large = "ml", "l"
	case Count:
		return number(q.Amount)
	}
	if q.Amount >= 1000 {
		return number(q.Amount/1000) + " " + large
	}
	return number(q.Amount) + " " + small
}

// number writes a value with two decimals at most.
func number(value float64) string {
	text := strconv.FormatFloat(value, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
