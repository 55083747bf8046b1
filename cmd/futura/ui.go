package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/dashboard"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/console"
)

// uiFlags are what ui takes.
type uiFlags struct {
	headFlags
	listen   string
	readOnly bool
}

func (a *app) uiCommand() *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use: "ui", Short: "Look at a cluster in a browser",
		Long: "ui prints a link to the pages of a cluster, which logs in once, within an hour. They are those of the " +
			"process that serves the store over HTTP: dev, serve or head. Where none runs here, and for --read-only, ui " +
			"serves the pages itself, to this machine alone, until Ctrl-C.",
		Example: "  futura ui\n  futura ui --read-only\n  futura ui --store fdb:fdb.cluster\n" +
			"  futura ui --url https://head.example.org --token-file token",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			served := f.url != ""
			if !served && !f.readOnly {
				_, err := a.findHead(false)
				served = err == nil
			}
			switch {
			case served && f.readOnly:
				return usageError{errors.New("--read-only is for pages that this command serves: make a token with the role " +
					"read for those of --url")}
			case served:
				return a.printPage(cmd.Context(), &f.headFlags)
			default:
				return a.open(cmd.Context(), func(c *futures.Client) error { return a.servePages(cmd.Context(), c, &f) })
			}
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0",
		"a loopback address where the pages are served, if no process serves the store; port 0 takes a free one")
	flags.BoolVar(&f.readOnly, "read-only", false, "serve pages that can change nothing")
	return cmd
}

// pageView is what ui prints.
type pageView struct {
	URL string `json:"url"`
}

// printPage asks a server for a link that logs in.
func (a *app) printPage(ctx context.Context, f *headFlags) error {
	c, err := a.connect(f)
	if err != nil {
		return err
	}
	at := strings.TrimSuffix(c.base.String(), "/") + dashboard.Path
	var link struct {
		Link string `json:"link"`
	}
	err = c.call(ctx, http.MethodPost, "/api/v1/links", nil, &link)
	var problem *apiError
	switch {
	case errors.As(err, &problem) && problem.Code == "no_login": // it is open to all
	case err != nil:
		return err
	default:
		at += "#login=" + link.Link
	}
	return a.show(&pageView{at}, [][]string{{at}})
}

// servePages serves the pages of a cluster until ctx ends.
func (a *app) servePages(ctx context.Context, c *futures.Client, f *uiFlags) error {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return usageError{fmt.Errorf("%w: name another address with --listen", err)}
	}
	hosts := hostsOf(listener.Addr())
	if hosts == nil {
		return errors.Join(usageError{fmt.Errorf("--listen %s is not a loopback address: use futura serve, with tokens",
			f.listen)}, listener.Close())
	}
	role, secret, tokens := stack.Admin, stack.NewSecret(), &stack.Tokens{}
	if f.readOnly {
		role = stack.Read
	}
	tokens.Add("ui", secret, role)
	waiting, stopping := context.WithCancel(context.Background())
	defer stopping()
	pages := httpapi.New(c, httpapi.Options{Stack: stack.Options{
		Tokens: tokens, Hosts: hosts, Version: version, Logger: a.logger(false), Stopping: waiting.Done(),
	}})
	dashboard.Register(pages)
	server := pages.Server(nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	at := "http://" + listener.Addr().String() + dashboard.LoginPath + tokens.NewLink(secret)
	if err = a.show(&pageView{at}, [][]string{{at}}); err == nil {
		if console.Terminal(a.out) != nil {
			fmt.Fprintln(a.err, "Open this link within an hour; stop with Ctrl-C.")
		}
		select {
		case <-ctx.Done():
		case err = <-served:
			return err
		}
	}
	stopping()
	ending, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending), <-served)
}
