package names_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/names"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	report := fdbmodel.Submission{Spec: layout.Spec{Function: "go:report"}, Unique: &fdbmodel.Unique{Key: "nightly"}}
	first, err := cluster.Submit(ctx, []fdbmodel.Submission{report})
	if err != nil {
		panic(err)
	}
	_, err = cluster.Submit(ctx, []fdbmodel.Submission{report})
	fmt.Println(errors.Is(err, fdbmodel.ErrNotUnique))
	name, err := names.Of(cluster).Of(ctx, report)
	if err != nil {
		panic(err)
	}
	holder, err := names.Of(cluster).Holder(ctx, name)
	fmt.Println(holder.ID == first[0].ID, err)
	// Output:
	// true
	// true <nil>
}
