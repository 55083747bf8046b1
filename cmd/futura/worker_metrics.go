package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/socket"
)

const metricsListen = "metrics-listen"

// metricsFlags say where the command worker serves its metrics.
type metricsFlags struct {
	listen string
	access accessFlags
}

func (f *metricsFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, metricsListen, "",
		"serve this worker's metrics over HTTP at /metrics of this address, with --tokens or --token-file (default: off)")
	flags.StringVar(&f.access.named, "tokens", "",
		"with --metrics-listen: a file with named tokens, made by futura token create")
	flags.StringVar(&f.access.tokenFile, "token-file", "", "with --metrics-listen: a file with one token")
	flags.BoolVar(&f.access.plain, "plain-http", false,
		"with --metrics-listen: allow an address beyond this machine, where others can read metrics and tokens on their way")
}

// check refuses flags that don't go together.
func (f *metricsFlags) check(flags *pflag.FlagSet) error {
	if f.listen == "" {
		for _, name := range []string{"tokens", "token-file", "plain-http"} {
			if flags.Changed(name) {
				return usageError{fmt.Errorf("--%s needs --%s: name an address such as 127.0.0.1:7430", name, metricsListen)}
			}
		}
		return nil
	}
	switch {
	case !isAddress(f.listen):
		return usageError{fmt.Errorf("--%s %q: use HOST:PORT, such as 127.0.0.1:7430", metricsListen, f.listen)}
	case f.access.named == "" && f.access.tokenFile == "":
		return usageError{fmt.Errorf("--%s needs --tokens or --token-file: name the tokens of those who may read the "+
			"metrics; a server's are in the directory of its store", metricsListen)}
	case !f.access.plain && socket.LeavesMachine("tcp", f.listen):
		return usageError{fmt.Errorf("--%s %s has no encryption: others can read metrics and tokens on their way: use an "+
			"address of loopback, or --plain-http in a network that you trust", metricsListen, f.listen)}
	}
	return nil
}

// serve serves metrics until stop is called. The address is empty if none are served.
func (f *metricsFlags) serve(log *slog.Logger, all ...prometheus.Collector) (
	address string, stop func() error, err error,
) {
	stop = func() error { return nil }
	if f.listen == "" {
		return "", stop, nil
	}
	tokens, token, err := f.access.read(log)
	if err != nil {
		return "", stop, err
	}
	if token != "" {
		tokens.Add("metrics", token, stack.Read)
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return "", stop, usageError{fmt.Errorf("%w: name another address with --%s", err, metricsListen)}
	}
	server := stack.New(stack.Options{
		Title: "A worker of Futura", Description: "Its metrics, for Prometheus.", Tokens: tokens,
		Hosts: hostsOf(listener.Addr()), Collectors: all, Version: version, Logger: log,
	}).Server(nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), <-served)
	}
	return "http://" + listener.Addr().String() + "/metrics", stop, nil
}
