package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
)

// serverFlags are what the commands take that serve a cluster over HTTP.
type serverFlags struct {
	listen     string
	listenFlag string // the flag that sets it
	store      string
	access     accessFlags
	cert, key  string
	batches    batchStoreFlags
	peers      peersFlags
}

// add adds the flags. HTTP is served at listen by default, and patience is how
// long batches wait, for the head and for workers. --listen and --rest-api are one flag,
// whichever is listed.
func (f *serverFlags) add(flags *pflag.FlagSet, listenFlag, listen string, patience time.Duration) {
	f.listenFlag = "--" + listenFlag
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "listen" || name == "rest-api" {
			name = listenFlag
		}
		return pflag.NormalizedName(name)
	})
	flags.StringVar(&f.listen, listenFlag, listen, "where HTTP is served; port 0 takes a free one")
	flags.StringVar(&f.store, "store-listen", "",
		"also serve an embedded store to other processes at this address, with a token and TLS (default: off)")
	flags.StringVar(&f.cert, "tls-cert", "",
		"a file with the certificate for HTTPS and its chain; it and its key are read again when they change")
	flags.StringVar(&f.key, "tls-key", "", "a file with the certificate's private key")
	f.access.add(flags)
	under(flags, ofHTTP)
	f.batches.add(flags, patience)
	under(flags, ofBatches)
	f.peers.add(flags)
	under(flags, ofPeers)
}

// node is the process that the flags describe, without a store.
func (f *serverFlags) node(a *app, log *slog.Logger) (*node, error) {
	n := &node{
		app: a, log: log, listen: f.listen, listenFlag: f.listenFlag, doorListen: f.store, batches: &f.batches,
		peersFlags: &f.peers, drain: stopTime,
		accessLog: f.access.log, open: f.access.open,
	}
	var err error
	if n.certificate, err = openCertificate(f.cert, f.key, log); err == nil {
		err = f.access.check(f.listen, f.listenFlag, n.certificate != nil)
	}
	if err == nil {
		err = f.peers.check()
	}
	if err == nil {
		n.tokens, n.token, err = f.access.read(log)
	}
	return n, err
}

// close closes the client and the store.
func (n *node) close(ctx context.Context) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return errors.Join(n.client.Close(closing), n.db.Close())
}
