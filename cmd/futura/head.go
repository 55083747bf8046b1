package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/remote"
	"github.com/futura-run/futura/futures"
)

// headCommandFlags are what head takes.
type headCommandFlags struct {
	batches   batchStoreFlags
	listen    string
	store     string
	tokenFile string
	tls       certificateFlags
	accessLog bool
	verbose   bool
}

func (a *app) headCommand() *cobra.Command {
	var f headCommandFlags
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Run a head for batches until Ctrl-C: the REST API of b7s and more",
		Long: "head makes batches durable, gives their items to the cluster's workers, and serves them over HTTP. Several\n" +
			"may run on one store. On a loopback address everybody may do everything unless --token-file is given;\n" +
			"elsewhere it must be.",
		Example: "  futura head --rest-api 127.0.0.1:8080\n" +
			"  futura head --store fdb:fdb.cluster --token-file tokens --rest-api 10.0.0.1:8080\n" +
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
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the tokens of requests and their roles")
	flags.BoolVar(&f.accessLog, "access-log", false, "log each request")
	flags.BoolVar(&f.verbose, "verbose", false, "log each request and each step")
	return cmd
}

func (a *app) head(ctx context.Context, f *headCommandFlags) error {
	log := a.logger(f.verbose)
	certificate, err := f.tls.load()
	if err != nil {
		return err
	}
	n := &node{
		app: a, log: log, token: newToken(), tls: certificate, listen: f.listen, doorListen: f.store,
		batches: &f.batches, listenFlag: "--rest-api", accessLog: f.accessLog, open: f.tokenFile == "",
		alone: true, tokenFile: f.tokenFile,
	}
	if f.tokenFile != "" {
		if n.tokens, err = rest.OpenTokens(f.tokenFile, log); err != nil {
			return usageError{err}
		}
		defer reloadAtHangup(n)()
	} else if err := needsLoopback(f.listen); err != nil {
		return err
	}
	a.outlivesServer = true
	if n.db, err = a.openStore(ctx); err != nil {
		return err
	}
	if _, own := n.ownDir(); n.tokens != nil && (own || f.store != "") {
		n.tokens.Also(n.token) // for commands of this user, and who opens the store
	} else if n.tokens != nil {
		n.token = ""
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

// needsLoopback refuses to serve everybody beyond this machine.
func needsLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usageError{fmt.Errorf("--rest-api: %w", err)}
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return usageError{fmt.Errorf("--rest-api %s is not a loopback address: say who may do what, by --token-file", listen)}
}

// reloadAtHangup reads the tokens again at SIGHUP, until the returned function
// is called.
func reloadAtHangup(n *node) func() {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			if err := n.tokens.Reload(); err != nil {
				n.log.Error("the tokens are those that were read before", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}
