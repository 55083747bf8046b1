package promises_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	all := promises.Of(cluster)
	made, err := all.Make(ctx, fdbmodel.Submission{Spec: layout.Spec{Label: "payment 7"}})
	fmt.Println(made.State, err)
	link := made.Token.Text() // goes to the payment provider
	token, err := promises.ParseToken(link)
	if err != nil {
		panic(err)
	}
	paid := promises.Value{Bytes: []byte(`{"paid": true}`), Codec: layout.CodecJSON}
	fmt.Println(all.ResolveBy(ctx, token, paid))
	fmt.Println(all.ResolveBy(ctx, token, paid)) // its second call
	// Output:
	// blocked <nil>
	// false <nil>
	// true <nil>
}
