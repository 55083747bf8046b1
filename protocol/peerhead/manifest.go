package peerhead

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// Manifests serves the modules of a cluster to nodes of b7s, which install from a manifest
// and an archive that they get by HTTP. A URL can't be guessed: it has a proof that only
// the head can make, so no token is needed.
type Manifests struct {
	cluster  *fdbmodel.Cluster
	key      []byte
	archives moduleCache
	routes   http.ServeMux
}

// NewManifests returns the manifests of a cluster. The key is that of Options.
func NewManifests(cluster *fdbmodel.Cluster, key []byte) *Manifests {
	s := &Manifests{cluster: cluster, key: key, archives: moduleCache{by: map[string]*sentModule{}}}
	s.routes.HandleFunc("GET /{proof}/{cid}/{file}", s.serve)
	return s
}

// Path returns the path of a module's manifest, by its content id.
func (s *Manifests) Path(cid string) string { return "/" + s.proof(cid) + "/" + cid + "/manifest.json" }

func (s *Manifests) proof(cid string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("futura manifest 1\n" + cid))
	return hex.EncodeToString(mac.Sum(nil))
}

// archiveName is the file that a manifest names.
const archiveName = "module.tar.gz"

// ServeHTTP implements http.Handler.
func (s *Manifests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.routes.ServeHTTP(w, r)
}

func (s *Manifests) serve(w http.ResponseWriter, r *http.Request) {
	proof, cid, file := r.PathValue("proof"), r.PathValue("cid"), r.PathValue("file")
	if !hmac.Equal([]byte(proof), []byte(s.proof(cid))) || file != "manifest.json" && file != archiveName {
		http.NotFound(w, r)
		return
	}
	m := s.archive(r.Context(), cid)
	if m == nil {
		return // the client has gone
	}
	defer s.archives.leave(cid, m)
	switch {
	case errors.Is(m.err, fdbmodel.ErrNotFound):
		http.NotFound(w, r)
	case m.err != nil:
		http.Error(w, "the module can't be read now", http.StatusServiceUnavailable)
	case file == archiveName:
		w.Header().Set("Content-Type", "application/gzip")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(m.code))
	default:
		s.describe(w, proof, cid, m.code)
	}
}

// archive returns the archive of a module, or why it can't be read. The caller leaves it. It returns nil, and there is
// nothing to leave, if ctx ends while another request reads the module.
func (s *Manifests) archive(ctx context.Context, cid string) *sentModule {
	for {
		reads := false
		m := s.archives.use(cid, func() ([]byte, error) {
			reads = true
			code, err := modules.Of(s.cluster).Get(ctx, cid)
			if err != nil {
				return nil, err
			}
			return archiveOf(code)
		})
		if reads {
			return m
		}
		select {
		case <-m.ready:
		case <-ctx.Done():
			s.archives.leave(cid, m)
			return nil
		}
		cutOff := errors.Is(m.err, context.Canceled) || errors.Is(m.err, context.DeadlineExceeded)
		if !cutOff || ctx.Err() != nil {
			return m
		}
		s.archives.leave(cid, m) // the request that read it has ended
	}
}

// describe writes the manifest of an archive.
func (s *Manifests) describe(w http.ResponseWriter, proof, cid string, archive []byte) {
	sum := sha256.Sum256(archive)
	type source struct {
		URL      string `json:"url"`
		Checksum string `json:"checksum"`
	}
	manifest := struct {
		Runtime source `json:"runtime"`
	}{source{URL: "/" + proof + "/" + cid + "/" + archiveName, Checksum: hex.EncodeToString(sum[:])}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&manifest) // the client has gone
}

// archiveOf packs a module, the same each time.
func archiveOf(code []byte) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	header := tar.Header{
		Name: b7sMethod, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(code)), Format: tar.FormatUSTAR,
	}
	if err := t.WriteHeader(&header); err != nil {
		return nil, err
	}
	_, err = t.Write(code)
	err = errors.Join(err, t.Close(), z.Close())
	return packed.Bytes(), err
}
