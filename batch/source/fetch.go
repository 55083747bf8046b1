package source

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/futura-run/futura/fdbmodel/modules"
)

// MaxArchive is the largest archive of a function, in bytes.
const MaxArchive = 64 << 20

// Other limits of what is fetched to install a function.
const (
	maxManifest  = 1 << 20
	maxRedirects = 5
	fetchTime    = 60 * time.Second
	dialTime     = 10 * time.Second
)

// Options of a Client.
type Options struct {
	// Private allows private addresses, and HTTP without TLS. Defaults to false.
	Private bool
	// Meter accounts for what is fetched. Defaults to none.
	Meter Meter
}

// Client fetches functions over HTTP. It looks at the address that it connects to, so
// that no name and no redirect leads elsewhere, and uses no proxy. Its methods may be
// called from many goroutines.
type Client struct {
	options Options
	http    *http.Client
}

// NewClient returns a client.
func NewClient(o Options) *Client {
	o.Meter = orNone(o.Meter)
	dialer := &net.Dialer{Timeout: dialTime}
	if !o.Private {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			host, err := netip.ParseAddrPort(address)
			if err != nil || !isPublic(host.Addr()) {
				return fmt.Errorf("%s: %w", address, ErrPrivate)
			}
			return nil
		}
	}
	return &Client{options: o, http: &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: dialTime,
			ResponseHeaderTimeout: fetchTime / 2, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
			DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return checkURL(r.URL, o.Private)
		},
	}}
}

// publicV6 is what the internet uses of IPv6. Outside of it are addresses that
// stand for others of IPv4 (compatible, translated, NAT64), site-local ones, and
// what is not assigned.
var publicV6 = netip.MustParsePrefix("2000::/3")

// reserved are the networks beside those that netip knows, from the registries of
// special addresses.
var reserved = networks(
	"0.0.0.0/8",         // this network
	"100.64.0.0/10",     // of carriers
	"192.0.0.0/24",      // of protocols
	"192.0.2.0/24",      // for documents
	"192.31.196.0/24",   // of name servers
	"192.52.193.0/24",   // multicast tunnels
	"192.88.99.0/24",    // 6to4
	"192.175.48.0/24",   // of name servers
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // for documents
	"203.0.113.0/24",    // for documents
	"240.0.0.0/4",       // not assigned
	"2001::/23",         // of protocols: Teredo, benchmarks, ORCHID
	"2001:db8::/32",     // for documents
	"2002::/16",         // 6to4
	"2620:4f:8000::/48", // of name servers
	"3fff::/20",         // for documents
)

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// isPublic reports whether an address is a public internet address.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" || a.Is6() && !publicV6.Contains(a) {
		return false
	}
	for _, network := range reserved {
		if network.Contains(a) {
			return false
		}
	}
	return !isTunnel(a)
}

// isTunnel reports whether the second half of an address is that of an ISATAP
// tunnel, which leads to the IPv4 address in it.
func isTunnel(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// checkURL returns an error for a URL that functions are not fetched from. plain
// allows HTTP without TLS.
func checkURL(u *url.URL, plain bool) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%.100q: use http or https", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("%.100q has no host", u.Redacted())
	case u.Scheme == "http" && !plain:
		return fmt.Errorf("%.100q: %w", u.Redacted(), ErrPlain)
	default:
		return nil
	}
}

// fetch returns what is at a URL, at most limit bytes.
func (c *Client) fetch(ctx context.Context, u *url.URL, limit int64) ([]byte, error) {
	if err := checkURL(u, c.options.Private); err != nil {
		return nil, sourceError(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, sourceError(err)
	}
	r.Header.Set("User-Agent", "futura")
	response, err := c.http.Do(r)
	if err != nil {
		return nil, sourceError(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is of no use
	if response.StatusCode != http.StatusOK {
		return nil, sourceError(fmt.Errorf("%.200q answered %s", u.Redacted(), response.Status))
	}
	size := response.ContentLength
	if size < 0 || size > limit {
		size = limit
	}
	if err := c.options.Meter.Reserve(ctx, 2*size); err != nil { // a buffer that grows is copied
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, sourceError(err)
	}
	if int64(len(content)) > limit {
		return nil, sourceError(fmt.Errorf("%.200q has more than %d bytes", u.Redacted(), limit))
	}
	return content, nil
}

// sourceError says that a function can't be fetched.
func sourceError(err error) error {
	if errors.Is(err, ErrPrivate) || errors.Is(err, ErrPlain) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrSource, err)
}

// manifest says where a function's archive is.
type manifest struct {
	Runtime struct {
		URL      string `json:"url"`
		Checksum string `json:"checksum"`
	} `json:"runtime"`
	Deployment struct {
		URI      string `json:"uri"`
		Checksum string `json:"checksum"`
	} `json:"deployment"`
}

// parseManifest returns the archive's URL and its SHA-256. What the URL lacks is
// taken from that of the manifest.
func parseManifest(at *url.URL, content []byte) (*url.URL, []byte, error) {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, nil, sourceError(fmt.Errorf("the manifest is not valid JSON: %w", err))
	}
	where, checksum := m.Runtime.URL, m.Runtime.Checksum
	if where == "" {
		where, checksum = m.Deployment.URI, m.Deployment.Checksum
	}
	if where == "" {
		return nil, nil, sourceError(errors.New("the manifest has neither runtime.url nor deployment.uri"))
	}
	archive, err := at.Parse(where)
	if err != nil {
		return nil, nil, sourceError(fmt.Errorf("the manifest's url: %w", err))
	}
	sum, err := hex.DecodeString(strings.TrimSpace(checksum))
	if err != nil || len(sum) != sha256.Size {
		return nil, nil, sourceError(fmt.Errorf("the manifest's checksum %.80q is not a SHA-256 in hex", checksum))
	}
	return archive, sum, nil
}

// rawCID is how the content ids begin that are the SHA-256 of bytes as they are.
const rawCID = "bafkrei"

// vouches reports whether a content id is that of one of the contents.
func vouches(cid string, contents ...[]byte) bool {
	for _, content := range contents {
		if of, err := modules.CID(content); err == nil && of == cid {
			return true
		}
	}
	return false
}

// gatewayURL is where b7s finds the manifest of a function that has no URI.
const gatewayURL = "https://%s.ipfs.w3s.link/manifest.json"

// manifestURL is where a manifest is.
func manifestURL(uri, cid string) (*url.URL, error) {
	if uri == "" {
		if strings.Trim(strings.ToLower(cid), "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
			return nil, fmt.Errorf("%w: there is none, and the cid %.100q is not a content id: send the URL of the "+
				"function's manifest", ErrURL, cid)
		}
		uri = fmt.Sprintf(gatewayURL, cid)
	}
	at, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return at, nil
}

// Archive follows a manifest to its archive, and checks that. Without a uri the manifest is that of the content id at
// b7s's IPFS gateway. A content id that is a hash of bytes must be that of the manifest or of the archive. It returns
// ErrURL, ErrSource, ErrPrivate and ErrPlain, and the errors of the meter.
func (c *Client) Archive(ctx context.Context, uri, cid string) ([]byte, error) {
	at, err := manifestURL(uri, cid)
	if err != nil {
		return nil, err
	}
	content, err := c.fetch(ctx, at, maxManifest)
	if err != nil {
		return nil, err
	}
	where, want, err := parseManifest(at, content)
	if err != nil {
		return nil, err
	}
	archive, err := c.fetch(ctx, where, MaxArchive)
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(archive); subtle.ConstantTimeCompare(got[:], want) != 1 {
		return nil, sourceError(fmt.Errorf("the archive at %.200q has the SHA-256 %x, its manifest says %x",
			where.Redacted(), got, want))
	}
	if strings.HasPrefix(cid, rawCID) && !vouches(cid, content, archive) {
		return nil, sourceError(fmt.Errorf("cid %.100q is the content id neither of the manifest nor of the archive", cid))
	}
	return archive, nil
}
