package pantry

import (
	"fmt"
	"strings"
)

// FormatList writes ingredients in lines, with the quantities in one column.
func FormatList(ingredients []Ingredient) string {
	width := 0
	for _, ingredient := range ingredients {
		if length := len([]rune(ingredient.Product)); length > width {
			width = length
		}
	}
	var text strings.Builder
	for _, ingredient := range ingredients {
		fmt.Fprintf(&text, "%-*s  %s\n", width, ingredient.Product, ingredient.Quantity)
	}
	return text.String()
}
