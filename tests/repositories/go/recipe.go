package pantry

import (
	"bufio"
	"fmt"
	"math"
	"sort"
	"strings"

	"example.com/pantry/units"
)

// Ingredient is what a recipe needs of one product.
type Ingredient struct {
	Product  string
	Quantity units.Quantity
}

// Recipe is a dish for a number of people.
type Recipe struct {
	Name        string
	Serves      int
	Ingredients []Ingredient
}

// ParseIngredients reads lines such as "flour: 500 g" and skips empty ones.
func ParseIngredients(text string) ([]Ingredient, error) {
	var ingredients []Ingredient
	scanner := bufio.NewScanner(strings.NewReader(text))
	for line := 1; scanner.Scan(); line++ {
		content := strings.TrimSpace(scanner.Text())
		if content == "" {
			continue
		}
		product, quantity, found := strings.Cut(content, ":")
		if !found {
			return nil, fmt.Errorf("line %d: missing colon", line)
		}
		parsed, err := units.Parse(quantity)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		ingredients = append(ingredients, Ingredient{normalize(product), parsed})
	}
	return ingredients, scanner.Err()
}

// For returns the recipe for another number of people.
func (r Recipe) For(people int) Recipe {
	factor := float64(people) / float64(r.Serves)
	scaled := Recipe{Name: r.Name, Serves: people}
	for _, ingredient := range r.Ingredients {
		ingredient.Quantity = ingredient.Quantity.Scale(factor)
		scaled.Ingredients = append(scaled.Ingredients, ingredient)
	}
	return scaled
}

// Portions returns for how many people the pantry allows the recipe.
func (p *Pantry) Portions(r Recipe) int {
	portions := math.Inf(1)
	for _, ingredient := range r.Ingredients {
		total := p.Total(ingredient.Product, ingredient.Quantity.Kind)
		each := ingredient.Quantity.Amount / float64(r.Serves)
		portions = math.Min(portions, math.Floor(total.Amount/each))
	}
	if math.IsInf(portions, 1) {
		return 0
	}
	return int(portions)
}

// ShoppingList returns what the recipes need together beyond what there is,
// sorted by product.
func (p *Pantry) ShoppingList(recipes ...Recipe) []Ingredient {
	type key struct {
		product string
		kind    units.Kind
	}
	needed := make(map[key]float64)
	for _, recipe := range recipes {
		for _, ingredient := range recipe.Ingredients {
			needed[key{ingredient.Product, ingredient.Quantity.Kind}] += ingredient.Quantity.Amount
		}
	}
	var list []Ingredient
	for k, amount := range needed {
		missing := amount - p.Total(k.product, k.kind).Amount
		if missing > 0 {
			list = append(list, Ingredient{k.product, units.Quantity{Amount: missing, Kind: k.kind}})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].Product != list[j].Product {
			return list[i].Product < list[j].Product
		}
		return list[i].Quantity.Kind < list[j].Quantity.Kind
	})
	return list
}
