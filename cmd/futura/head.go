package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// headCommandFlags are what head takes.
type headCommandFlags struct {
	serverFlags
	verbose bool
	noHints bool
}

func (a *app) headCommand() *cobra.Command {
	var f headCommandFlags
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Run a head for batches until Ctrl-C: the REST API of b7s and more",
		Long: "head makes batches durable, gives their items to the cluster's workers, and serves them over HTTP. Several " +
			"heads may run on one store. Requests need a token of --tokens, or the one in DIR/token. With --open, " +
			"everyone who reaches the loopback address may do everything, as with b7s.",
		Example: "  futura head --rest-api 127.0.0.1:8080 --open\n" +
			"  futura head --store fdb:fdb.cluster --tokens tokens --rest-api 10.0.0.1:8080 --tls-cert c.pem --tls-key k.pem\n" +
			"  futura head --batch-db-server mongodb://127.0.0.1:27017/ --batch-db-name b7s-db",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.head(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.add(flags, "rest-api", "127.0.0.1:8080", time.Minute)
	flags.BoolVar(&f.access.open, "open", false,
		"let everyone who reaches the loopback address do everything, without a token")
	flags.BoolVar(&f.noHints, "no-hints", false, "send no hints to workers: all goes through the store")
	flags.BoolVar(&f.verbose, "verbose", false, "log each request and each step")
	return cmd
}

func (a *app) head(ctx context.Context, f *headCommandFlags) error {
	a.untilStopped = true
	log := a.logger(f.verbose)
	n, err := f.node(a, log)
	if err != nil {
		return err
	}
	n.alone = true
	a.outlivesServer = true
	if n.db, err = a.openStore(ctx); err != nil {
		return err
	}
	if err := f.access.complete(n); err != nil {
		return errors.Join(err, n.db.Close())
	}
	if n.tokens != nil {
		defer reloadAtHangup(n)()
		if _, own := n.ownDir(); own || f.store != "" || f.access.named == "" || f.access.tokenFile != "" {
			n.tokens.Add("head", n.token, stack.Admin) // for commands of this user, and processes that open the store
		} else {
			n.token, n.tokenFile = "", ""
		}
	}
	o := futures.Options{Cluster: a.cluster, Logger: log, NoHints: f.noHints, Tracer: a.traces.tracer()}
	if n.client, err = futures.New(ctx, n.clientStore(), o); err != nil {
		return errors.Join(err, n.db.Close())
	}
	reapLost(n.db, n.client.Cluster(), log)
	return errors.Join(n.run(ctx, nil), n.close(ctx))
}
