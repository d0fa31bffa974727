package pantry

import (
	"reflect"
	"strings"
	"testing"

	"example.com/pantry/units"
)

func pancakes(t *testing.T) Recipe {
	t.Helper()
	ingredients, err := ParseIngredients("Flour: 300 g\n\nmilk: 6 dl\neggs: 3\n")
	if err != nil {
		t.Fatal(err)
	}
	return Recipe{Name: "pancakes", Serves: 4, Ingredients: ingredients}
}

func TestParseIngredients(t *testing.T) {
	t.Run("reads lines", func(t *testing.T) {
		want := []Ingredient{
			{"flour", units.Quantity{Amount: 300, Kind: units.Mass}},
			{"milk", units.Quantity{Amount: 600, Kind: units.Volume}},
			{"eggs", units.Quantity{Amount: 3, Kind: units.Count}},
		}
		if got := pancakes(t).Ingredients; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("names the line of a mistake", func(t *testing.T) {
		_, err := ParseIngredients("flour: 300 g\n\nmilk 6 dl")
		if err == nil || !strings.HasPrefix(err.Error(), "line 3:") {
			t.Errorf("got %v", err)
		}
	})
}

func TestFor(t *testing.T) {
	recipe := pancakes(t)
	scaled := recipe.For(6)
	if got := scaled.Ingredients[0].Quantity.Amount; got != 450 || scaled.Serves != 6 {
		t.Errorf("got %v for %d", got, scaled.Serves)
	}
	if got := recipe.Ingredients[0].Quantity.Amount; got != 300 {
		t.Errorf("the recipe itself changed to %v", got)
	}
}

func TestPortions(t *testing.T) {
	p := filled(t)
	t.Run("scarcest product decides", func(t *testing.T) {
		if got := p.Portions(pancakes(t)); got != 6 {
			t.Errorf("got %d, want 6", got)
		}
	})
	t.Run("recipe without ingredients", func(t *testing.T) {
		if got := p.Portions(Recipe{Name: "air", Serves: 1}); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
	})
}

func TestShoppingList(t *testing.T) {
	p := filled(t)
	t.Run("nothing is missing", func(t *testing.T) {
		if got := p.ShoppingList(pancakes(t)); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("recipes add up", func(t *testing.T) {
		recipe := pancakes(t)
		want := "eggs  1.5\nmilk  500 ml\n"
		if got := FormatList(p.ShoppingList(recipe, recipe.For(6))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
