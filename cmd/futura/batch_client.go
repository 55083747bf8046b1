package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/trust"
)

// headFlags say where a head is.
type headFlags struct {
	url       string
	tokenFile string
	authority string
	ofPeers   bool // a head that takes peers is looked for first
}

func (f *headFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "url", "", "the head's URL (default: that of a head of the store that this user runs here)")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the token in its first line")
	flags.StringVar(&f.authority, "tls-ca", "", "a file with the CA certificates that vouch for the head's")
}

// pageFlags say which page of a list a head answers with.
type pageFlags struct {
	limit int
	after string
}

func (f *pageFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.limit, "limit", 100, "how many to print, at most 500")
	flags.StringVar(&f.after, "after", "", "the last id of the previous page")
}

// query is the end of the URL of the page.
func (f *pageFlags) query() string {
	return "?" + url.Values{"limit": {strconv.Itoa(f.limit)}, "after": {f.after}}.Encode()
}

// apiError is a problem that a head answered with.
type apiError struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Error implements error.
func (e *apiError) Error() string {
	code := e.Code
	if e.Name != "" {
		code = e.Name
	}
	if e.Status == http.StatusUnauthorized {
		return fmt.Sprintf("the head wants a token that it knows: name a file that holds one with --token-file (%s)", code)
	}
	return fmt.Sprintf("%s (%s)", e.Detail, code)
}

// mistake reports whether the request was wrong, rather than the head, or than the moment: it may have no room.
func (e *apiError) mistake() bool {
	return e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests
}

// headClient talks to a head.
type headClient struct {
	base  *url.URL
	token string
	http  *http.Client
}

// connect finds the head.
func (a *app) connect(f *headFlags) (*headClient, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: 2 * time.Minute}
	if f.authority != "" {
		authorities, err := os.ReadFile(f.authority)
		if err != nil {
			return nil, usageError{err}
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, usageError{fmt.Errorf("%s contains no certificate", f.authority)}
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	c := &headClient{http: &http.Client{Transport: again{transport}}}
	where := f.url
	if where == "" {
		e, err := a.findHead(f.ofPeers)
		if err != nil {
			return nil, err
		}
		where, c.token = e.URL, e.Token
	}
	base, err := url.Parse(where)
	if err != nil || base.Host == "" {
		return nil, usageError{fmt.Errorf("--url %.100q: use a URL such as http://127.0.0.1:8080", where)}
	}
	c.base = base
	if f.tokenFile != "" {
		if c.token, err = firstToken(f.tokenFile); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// firstToken is the last word of the first line of a file that says something.
func firstToken(path string) (string, error) {
	content, err := trust.ReadSecret(path, maxToken)
	if err != nil {
		return "", usageError{err}
	}
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words[len(words)-1], nil
		}
	}
	return "", usageError{fmt.Errorf("%s has no token in its first line", path)}
}

// send returns a head's answer, which must be closed, or the problem that it is.
func (c *headClient) send(ctx context.Context, method, path string, body []byte, headers ...string,
) (*http.Response, error) {
	target := strings.TrimSuffix(c.base.String(), "/") + path
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		err = fmt.Errorf("%w: name a file with the certificates that vouch for it with --tls-ca", err)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("%w: nothing listens there: start the head, or name another one with --url", err)
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it is read as far as it is wanted
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	problem := &apiError{}
	if err != nil || json.Unmarshal(content, problem) != nil || problem.Status == 0 {
		problem.Status, problem.Code = response.StatusCode, "unknown"
		problem.Detail = fmt.Sprintf("%s answered %s: %.100q", target, response.Status, bytes.TrimSpace(content))
	}
	return nil, problem
}

// call decodes a head's answer.
func (c *headClient) call(ctx context.Context, method, path string, body []byte, to any, headers ...string) error {
	response, err := c.send(ctx, method, path, body, headers...)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if to == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(to); err != nil {
		return fmt.Errorf("%w: %w", errNoHead, err)
	}
	return nil
}

// Repeating of requests that may be repeated.
const (
	tries   = 8
	tryWait = 200 * time.Millisecond
)

// repeat calls fn until it works, fails for a reason that stays, or too often. Its
// error is that of ctx once that has ended.
func repeat(ctx context.Context, fn func() error) error {
	wait := tryWait
	for n := 1; ; n++ {
		err := fn()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		var problem *apiError
		if err == nil || n == tries || errors.As(err, &problem) && problem.mistake() {
			return err
		}
		if err := clock.Sleep(ctx, clock.Real{}, wait); err != nil {
			return err
		}
		wait *= 2
	}
}
