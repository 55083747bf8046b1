package rest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
)

func parse(t *testing.T, id string) futures.ID {
	t.Helper()
	parsed, err := layout.ParseID(id)
	require.NoError(t, err)
	return parsed
}

const installPath = "/api/v1/functions/install"

var echoModule = []byte("\x00asm\x01\x00\x00\x00")

type entry struct {
	name string
	kind byte
	body []byte
}

// archive is a tar.gz.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.body)), Mode: 0o644, Linkname: "x"}
		if e.kind != tar.TypeReg {
			h.Size = 0
		} else {
			h.Linkname = ""
		}
		require.NoError(t, w.WriteHeader(h))
		if e.kind == tar.TypeReg {
			_, err := w.Write(e.body)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return []byte(zipped(t, b.Bytes()))
}

type installed struct {
	Code       string
	FunctionID string `json:"function_id"`
	Methods    []struct{ Method, CID, Function string }
}

// runs checks that an installed method can be run.
func runs(t *testing.T, client *futures.Client, id, method, cid string) {
	t.Helper()
	template := batch.Template{FunctionID: id, Method: method}
	function, err := client.Cluster().ResolveFunction(t.Context(), template.Functions()[0])
	require.NoError(t, err)
	require.Equal(t, "wasm:"+cid, function)
}

func TestAModuleIsInstalled(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client})
	cid, err := modules.CID(echoModule)
	require.NoError(t, err)
	var got installed
	id := "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q"
	f.send("POST", installPath+"?function_id="+id+"&method=echo.wasm", string(echoModule)).Into(200, &got)
	require.Equal(t, "200", got.Code)
	require.Equal(t, id, got.FunctionID)
	runs(t, client, id, "echo.wasm", cid)
	f.send("POST", installPath, string(echoModule)).Into(200, &got)
	require.Equal(t, cid, got.FunctionID)
	runs(t, client, cid, "", cid)
}

func TestAnArchiveIsInstalled(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client})
	other := append(bytes.Clone(echoModule), 0, 1, 0)
	packed := archive(t, entry{"./", tar.TypeDir, nil}, entry{"./echo.wasm", tar.TypeReg, echoModule},
		entry{"sub/other.wasm", tar.TypeReg, other}, entry{"README", tar.TypeReg, []byte("read me")},
		entry{"e", tar.TypeReg, nil})
	var got installed
	f.send("POST", installPath+"?function_id=mine", string(packed)).Into(200, &got)
	require.Len(t, got.Methods, 2)
	for _, m := range got.Methods {
		runs(t, client, "mine", m.Method, m.CID)
	}
	require.Equal(t, "echo.wasm", got.Methods[0].Method)
	require.Equal(t, "sub/other.wasm", got.Methods[1].Method)
}

func TestArchivesThatAreRefused(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client})
	good := entry{"echo.wasm", tar.TypeReg, echoModule}
	many := make([]entry, 1001)
	for i := range many {
		many[i] = entry{fmt.Sprint(i), tar.TypeReg, nil}
	}
	for says, packed := range map[string][]byte{
		"leads out":                archive(t, good, entry{"../x.wasm", tar.TypeReg, echoModule}),
		"/etc/x.wasm":              archive(t, good, entry{"/etc/x.wasm", tar.TypeReg, echoModule}),
		"neither a file":           archive(t, good, entry{"link", tar.TypeSymlink, nil}),
		"no WASM module":           archive(t, entry{"README", tar.TypeReg, []byte("read me")}),
		"more than 1000 files":     archive(t, many...),
		"unexpected EOF":           []byte(zipped(t, []byte("no tar"))),
		"it is not gzip":           []byte("\x1f\x8bxxxxxxxxxxxxxxxxxxxxxx"),
		"a/../../x.wasm\" leads":   archive(t, good, entry{"a/../../x.wasm", tar.TypeReg, echoModule}),
		"\"hard\" is neither":      archive(t, good, entry{"hard", tar.TypeLink, nil}),
		"\"b\\\\c.wasm\" leads ou": archive(t, good, entry{`b\c.wasm`, tar.TypeReg, echoModule}),
	} {
		f.send("POST", installPath, string(packed)).Problem(422, "bad_archive", says)
	}
	modules, err := modules.Of(client.Cluster()).List(t.Context())
	require.NoError(t, err)
	require.Empty(t, modules)
}

func TestModulesAreChecked(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	odd := append(slices.Clone(echoModule), "odd"...)
	f := newFixture(t, rest.Options{Client: client, CheckModule: func(_ context.Context, _ string, m []byte) error {
		if bytes.HasSuffix(m, []byte("odd")) {
			return errors.New("it is odd")
		}
		return nil
	}})
	f.send("POST", installPath, string(odd)).Problem(422, "bad_module", "odd")
	// One module that can't run keeps the others of its archive out.
	packed := archive(t, entry{"good.wasm", tar.TypeReg, echoModule}, entry{"odd.wasm", tar.TypeReg, odd})
	f.send("POST", installPath, string(packed)).Problem(422, "bad_module", "odd")
	modules, err := modules.Of(client.Cluster()).List(t.Context())
	require.NoError(t, err)
	require.Empty(t, modules)
}

// source serves a manifest and an archive.
func source(t *testing.T, manifest string, packed []byte) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /manifest.json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, manifest) })
	mux.HandleFunc("GET /fn.tar.gz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) })
	mux.Handle("GET /loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("GET /moved", http.RedirectHandler("/manifest.json", http.StatusFound))
	mux.Handle("GET /file", http.RedirectHandler("file:///etc/passwd", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAManifestIsFollowed(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client, PrivateSources: true})
	packed := archive(t, entry{"echo.wasm", tar.TypeReg, echoModule})
	sum := sha256.Sum256(packed)
	for _, manifest := range []string{
		fmt.Sprintf(`{"runtime":{"url":"/fn.tar.gz","checksum":"%x"},"name":"x"}`, sum),
		fmt.Sprintf(`{"deployment":{"uri":"fn.tar.gz","checksum":"%X"}}`, sum),
	} {
		base := source(t, manifest, packed)
		for _, path := range []string{"/manifest.json", "/moved"} {
			var got installed
			f.send("POST", installPath, `{"uri":"`+base+path+`","cid":"x"}`).Into(200, &got)
			id := sha256.Sum256([]byte(base + path))
			require.Equal(t, hex.EncodeToString(id[:]), got.FunctionID)
			runs(t, client, got.FunctionID, "echo.wasm", got.Methods[0].CID)
		}
	}
}

func TestSourcesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t), PrivateSources: true})
	packed := archive(t, entry{"echo.wasm", tar.TypeReg, echoModule})
	base := source(t, `{"runtime":{"url":"/fn.tar.gz","checksum":"`+hex.EncodeToString(make([]byte, 32))+`"}}`, packed)
	for path, says := range map[string]string{
		"/manifest.json": "SHA-256", "/none": "404", "/loop": "redirects", "/file": "http or https",
	} {
		f.send("POST", installPath, `{"uri":"`+base+path+`","cid":"x"}`).Problem(502, "bad_source", says)
	}
	for manifest, says := range map[string]string{
		`{}`: "runtime.url", `x`: "not valid JSON", `{"runtime":{"url":"/fn.tar.gz"}}`: "checksum",
		`{"runtime":{"url":"ftp://a/b","checksum":"` + hex.EncodeToString(make([]byte, 32)) + `"}}`: "http or https",
	} {
		f.send("POST", installPath, `{"uri":"`+source(t, manifest, nil)+`/manifest.json","cid":"x"}`).
			Problem(502, "bad_source", says)
	}
	f.send("POST", installPath, `{"uri":"file:///etc/passwd","cid":"x"}`).Problem(502, "bad_source", "http or https")
	f.send("POST", installPath, `{"uri":"http://a"}`).Problem(400, "bad_request", "CID is required")
	f.send("POST", installPath, `{"cid":"a/b"}`).Problem(400, "bad_request", "uri")
	f.send("POST", installPath, `{"cid":"x","topic":"other/x"}`).Problem(400, "not_supported", "topic")
	f.send("POST", installPath, ``).Problem(400, "bad_request", "empty")
}

func TestAContentIDIsChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t), PrivateSources: true})
	packed := archive(t, entry{"echo.wasm", tar.TypeReg, echoModule})
	manifest := fmt.Sprintf(`{"runtime":{"url":"/fn.tar.gz","checksum":"%x"}}`, sha256.Sum256(packed))
	at := source(t, manifest, packed) + "/manifest.json"
	for content, matches := range map[string]bool{string(packed): true, manifest: true, "another": false} {
		cid, err := modules.CID([]byte(content))
		require.NoError(t, err)
		answer := f.send("POST", installPath, `{"uri":"`+at+`","cid":"`+cid+`"}`)
		if matches {
			answer.Into(200, &installed{})
		} else {
			answer.Problem(502, "bad_source", "neither of the manifest nor of the archive")
		}
	}
}

func TestPrivateSourcesAreRefusedUnlessAllowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	base := source(t, `{}`, nil)
	f.send("POST", installPath, `{"uri":"`+base+`/manifest.json","cid":"x"}`).Problem(403, "insecure_source", "use https")
	for _, host := range []string{
		"localhost:1", "[::1]:1", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]:1", "0.0.0.0:1",
		"[::127.0.0.1]:1", "[fec0::1]:1", "[64:ff9b::7f00:1]:1", "[2002:7f00:1::1]:1", "[2001:0:7f00:1::1]:1",
		"[2a00::5efe:10.0.0.1]:1", "[2a00::200:5efe:10.0.0.1]:1", "[100::1]:1", "192.0.2.1", "198.18.0.1", "100.64.0.1",
	} {
		f.send("POST", installPath, `{"uri":"https://`+host+`/m","cid":"x"}`).Problem(403, "private_source", "private")
	}
}
