package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/futura-run/futura/internal/clock"
)

const (
	otlpEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	// defaultTimeout bounds an export with all its tries.
	defaultTimeout = 10 * time.Second
	firstRetry     = 500 * time.Millisecond
	// maxAnswer is how much is read of the answer of a collector.
	maxAnswer = 64 << 10
)

// client sends spans by OTLP over HTTP, as protobuf. OpenTelemetry's own links gRPC as well.
type client struct {
	http    *http.Client
	url     string
	headers http.Header
	timeout time.Duration
	retry   time.Duration // the wait before the second try, which doubles with each
	zip     bool
}

// newClient returns a client as the environment says.
func newClient(getenv func(string) string) (*client, error) {
	// of returns a setting of the exporter, that for traces before the one for all.
	of := func(name string) (variable, value string) {
		variable = "OTEL_EXPORTER_OTLP_TRACES_" + name
		if value = getenv(variable); value == "" {
			variable = "OTEL_EXPORTER_OTLP_" + name
			value = getenv(variable)
		}
		return variable, value
	}
	if name, protocol := of("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s %.40q: traces are sent by http/protobuf alone: use that, and the collector's port for "+
			"HTTP, 4318 by default", name, protocol)
	}
	c := &client{headers: http.Header{}, timeout: defaultTimeout, retry: firstRetry}
	var err error
	if c.url, err = endpoint(getenv); err != nil {
		return nil, err
	}
	if name, text := of("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 1 || ms > maxBound {
			return nil, fmt.Errorf("%s %.40q: use a number of milliseconds from 1 to %d", name, text, maxBound)
		}
		c.timeout = time.Duration(ms) * time.Millisecond
	}
	switch name, text := of("COMPRESSION"); text {
	case "", "none":
	case "gzip":
		c.zip = true
	default:
		return nil, fmt.Errorf("%s %.40q: use gzip or none", name, text)
	}
	name, text := of("HEADERS")
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if strings.TrimSpace(pair) == "" {
			continue
		}
		if !ok || err != nil || !isHeader(key, value) {
			return nil, fmt.Errorf("%s: use NAME=VALUE, separated by commas, with %%XX for other characters", name)
		}
		c.headers.Set(key, value)
	}
	c.http, err = httpClient(of)
	return c, err
}

// isHeader reports whether requests can have such a header: net/http refuses all that have another one.
func isHeader(name, value string) bool {
	noName := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }
	noValue := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return name != "" && !strings.ContainsFunc(name, noName) && !strings.ContainsFunc(value, noValue)
}

// endpoint is where traces are sent.
func endpoint(getenv func(string) string) (string, error) {
	name, text, path := tracesEndpoint, getenv(tracesEndpoint), ""
	if text == "" {
		name, text, path = otlpEndpoint, cmp.Or(getenv(otlpEndpoint), "http://localhost:4318"), "/v1/traces"
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s: use a URL such as http://localhost:4318", name)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return u.String(), nil
}

// httpClient trusts the certificates that the environment names. It follows no redirect: headers
// may hold secrets.
func httpClient(of func(string) (string, string)) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := of("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s %s: no certificate can be read from it", name, file)
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, MaxIdleConns: 1}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, nil
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. What failed for a moment is tried again within the
// timeout.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// It has the same encoding as an ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.zip {
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err = z.Write(body)
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
		body = zipped.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for wait := c.retry; ; wait *= 2 {
		after, err := c.post(ctx, body)
		if err == nil || after < 0 || ctx.Err() != nil {
			return err
		}
		if clock.Sleep(ctx, clock.Real{}, max(wait, after)) != nil {
			return err
		}
	}
}

// post sends a request once. After an error it returns how long to wait before the next at
// least, below 0 if there is no use in another.
func (c *client) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	r.Header = c.headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.zip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // the status says enough
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 for a date, which few send
		after = time.Duration(min(max(seconds, 0), 3600)) * time.Second
	default:
		after = -1
	}
	return after, fmt.Errorf("the collector answered %s", answer.Status)
}
