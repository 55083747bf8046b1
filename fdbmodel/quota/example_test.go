package quota_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/quota"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	limits := quota.Of(cluster)
	_, err = limits.Set(ctx, func(l *quota.Limits) { l.Pending = 10 })
	fmt.Println(err)
	fmt.Println(limits.Admit(ctx, 8))
	fmt.Println(errors.Is(limits.Admit(ctx, 11), quota.ErrLimit))
	// Output:
	// <nil>
	// <nil>
	// true
}
