package tuple_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Packed tuples sort as their elements do.
func ExamplePack() {
	a, err := tuple.Pack("orders", 9, "tea")
	if err != nil {
		panic(err)
	}
	b, err := tuple.Pack("orders", 10, "cake")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(a) < string(b), tuple.String(b))
	// Output: true ("orders", 10, "cake")
}

func ExampleReader() {
	key := tuple.AppendInt(tuple.AppendString(nil, "orders"), 17)
	rest := tuple.NewReader(key)
	fmt.Println(rest.Text(), rest.Int(), rest.Done())
	// Output: orders 17 <nil>
}
