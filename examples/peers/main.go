// Command peers runs functions on workers that have no access to the store: a head takes
// them as peers, here on loopback. docs/guide/peers.md goes through it.
//
//	go run ./examples/peers
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/protocol/peerworker"
)

var shout = futures.Define[string, string]("shout")

func main() {
	store := flag.String("store", "memory:", "where futures are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	address, stopHead, err := head(ctx, client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopHead()) }()
	stopPeer, err := peer(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopPeer()) }()
	answers, err := shout.Map(ctx, client, []string{"near", "far"})
	if err != nil {
		return err
	}
	for _, future := range answers {
		answer, err := future.Await(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}

// head takes peers, until it is stopped. It returns where they reach it.
func head(ctx context.Context, client *futures.Client) (address string, stop func() error, err error) {
	key, err := p2p.NewKey() // p2p.LoadKey keeps one in a file
	if err != nil {
		return "", nil, err
	}
	host, err := p2p.Open(ctx, p2p.Options{Key: key})
	if err != nil {
		return "", nil, err
	}
	h, err := peerhead.New(peerhead.Options{Cluster: client.Cluster(), Network: host, Key: key})
	if err != nil {
		return "", nil, errors.Join(err, host.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	h.Serve(host)
	err = host.Start()
	stop = func() error {
		cancel()
		return errors.Join(<-ended, host.Close())
	}
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return host.Addrs()[0], stop, nil
}

// peer runs functions for the head at an address, until it is stopped.
func peer(ctx context.Context, address string) (stop func() error, err error) {
	w, err := peerworker.New(peerworker.Options{Heads: []string{address}, Slots: 4})
	if err != nil {
		return nil, err
	}
	name, fn := shout.Bind(func(_ context.Context, text string) (string, error) {
		return strings.ToUpper(text), nil
	})
	if err := w.Register(name, fn); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}
