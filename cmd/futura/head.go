package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/futures"
)

// headCommandFlags are what head takes.
type headCommandFlags struct {
	batches batchStoreFlags
	listen  string
	store   string
	access  accessFlags
	tls     certificateFlags
	verbose bool
}

func (a *app) headCommand() *cobra.Command {
	var f headCommandFlags
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Run a head for batches until Ctrl-C: the REST API of b7s and more",
		Long: "head makes batches durable, gives their items to the cluster's workers, and serves them over HTTP. Several\n" +
			"may run on one store. Requests bear a token of --tokens, or that of DIR/token. With --open everybody who\n" +
			"reaches a loopback address may do everything, as with b7s.",
		Example: "  futura head --rest-api 127.0.0.1:8080 --open\n" +
			"  futura head --store fdb:fdb.cluster --tokens tokens --rest-api 10.0.0.1:8080 --tls-cert c.pem --tls-key k.pem\n" +
			"  futura head --batch-db-server mongodb://127.0.0.1:27017/ --batch-db-name b7s-db",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.head(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.batches.add(flags, time.Minute, time.Minute)
	f.tls.add(flags)
	flags.StringVar(&f.listen, "rest-api", "127.0.0.1:8080", "where HTTP is served; port 0 takes a free one")
	flags.StringVar(&f.store, "store-listen", "",
		"also serve an embedded store to other processes at this address, by token and TLS (default: not)")
	f.access.add(flags)
	flags.BoolVar(&f.access.open, "open", false,
		"let everybody who reaches a loopback address do everything, without a token")
	flags.BoolVar(&f.verbose, "verbose", false, "log each request and each step")
	return cmd
}

func (a *app) head(ctx context.Context, f *headCommandFlags) error {
	log := a.logger(f.verbose)
	certificate, err := f.tls.load()
	if err == nil {
		err = f.access.check(f.listen, "--rest-api", certificate != nil)
	}
	if err != nil {
		return err
	}
	n := &node{
		app: a, log: log, tls: certificate, listen: f.listen, doorListen: f.store, batches: &f.batches,
		listenFlag: "--rest-api", accessLog: f.access.log, open: f.access.open, alone: true, tokenFile: f.access.named,
	}
	if n.tokens, n.token, err = f.access.read(log); err != nil {
		return err
	}
	a.outlivesServer = true
	if n.db, err = a.openStore(ctx); err != nil {
		return err
	}
	if err := f.access.complete(n); err != nil {
		return errors.Join(err, n.db.Close())
	}
	if n.tokens != nil {
		defer reloadAtHangup(n)()
		if _, own := n.ownDir(); own || f.store != "" || f.access.named == "" {
			n.tokens.Add("head", n.token) // for commands of this user, and who opens the store
		} else {
			n.token = ""
		}
	}
	shared := n.db
	if kv.TraitsOf(n.db).Exclusive {
		shared = remote.Share(n.db)
	}
	if n.client, err = futures.New(ctx, shared, futures.Options{Cluster: a.cluster, Logger: log}); err != nil {
		return errors.Join(err, n.db.Close())
	}
	err = n.run(ctx, nil)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return errors.Join(err, n.client.Close(closing), n.db.Close())
}
