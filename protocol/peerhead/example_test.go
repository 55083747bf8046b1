package peerhead_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// A head that takes peers on loopback, for as long as its context lasts.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := embedded.OpenMemory(embedded.Options{})
	defer func() { _ = db.Close() }()
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := p2p.NewKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	host, err := p2p.Open(ctx, p2p.Options{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = host.Close() }()
	head, err := peerhead.New(peerhead.Options{Cluster: cluster, Network: host, Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- head.Run(ctx) }()
	head.Serve(host)
	if err := host.Start(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("peers:", len(head.Peers()))
	cancel()
	fmt.Println(<-ended)
	// Output:
	// peers: 0
	// <nil>
}
