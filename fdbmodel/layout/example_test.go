package layout_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// A room of the model that has its own keys says what they look like.
func ExampleKeyKind() {
	type price struct {
		Cents int64 `msgpack:"c,omitempty" json:"cents"`
	}
	table := layout.NewTable([]layout.KeyKind{{
		Name: "price", Subspace: "prices", Elements: []layout.Element{layout.Text("item")}, Record: layout.RecordOf[price],
		Holds: "the price of an item", Writer: "the shop",
	}})
	key := tuple.AppendString(layout.NewKeyspace("shop").Global("prices"), "tea")
	parsed := table.Parse(key)
	value, err := parsed.Kind.Decode(key, layout.Encode(&price{Cents: 250}))
	fmt.Println(parsed.Kind.Name, parsed.Text("item"), value.Record.(*price).Cents, err)
	// Output: price tea 250 <nil>
}

// The place of an unclaimed future follows from its records.
func ExamplePlaceOf() {
	row := layout.Row{Spec: &layout.Spec{Function: "go:price"}}
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	row.Attempts.Due = 1_800_000_000_000
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	row.Spec.Owner = "a batch"
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	// Output:
	// ready ready
	// delayed delayed
	// delayed held
}
