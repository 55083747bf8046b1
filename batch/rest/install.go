package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/source"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// installRequest names a function's manifest, as in b7s.
type installRequest struct {
	URI   string `json:"uri,omitempty" doc:"Of the manifest; without it the IPFS gateway that b7s uses is asked for cid"`
	CID   string `json:"cid" doc:"Required, as in b7s. With uri, the function's id is not this but the SHA-256 of uri"`
	Topic string `json:"topic,omitempty" doc:"Refused unless it stands for a queue. Workers of all queues get it"`
}

// installed describes an installed function.
type installed struct {
	Code       string            `json:"code"`
	FunctionID string            `json:"function_id" doc:"What to send to execute"`
	Methods    []installedMethod `json:"methods"`
}

// installedMethod is a module with the names that it has.
type installedMethod struct {
	Method   string `json:"method"`
	CID      string `json:"cid" doc:"The module's content id"`
	Function string `json:"function" doc:"The name for futures"`
	Size     int64  `json:"size"`
}

// maxFunctionID is the longest id or method of a function.
const maxFunctionID = 1024

// install stores the modules of a function: named by a manifest's URL (JSON), or
// sent as a module or an archive.
func (s *server) install(w http.ResponseWriter, r *http.Request) error {
	if err := s.needsCluster(); err != nil {
		return err
	}
	content, err := stack.Body(r, source.MaxArchive)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(content)
	if err != nil {
		return bodyProblem(err)
	}
	id, method := r.URL.Query().Get("function_id"), r.URL.Query().Get("method")
	if len(id) > maxFunctionID || len(method) > maxFunctionID {
		return stack.BadRequest("function_id and method have at most %d bytes each", maxFunctionID)
	}
	answer := &installed{Code: "200", FunctionID: id, Methods: []installedMethod{}}
	switch {
	case source.IsModule(body):
		err = s.installModule(r.Context(), answer, method, body)
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		err = s.installArchive(r.Context(), answer, body)
	default:
		err = s.installManifest(r.Context(), answer, body)
	}
	if err != nil {
		return err
	}
	return stack.WriteJSON(w, http.StatusOK, answer)
}

// installModule stores one module. Its id is its CID unless one is given.
func (s *server) installModule(ctx context.Context, to *installed, method string, code []byte) error {
	if to.FunctionID == "" {
		cid, err := modules.CID(code)
		if err != nil {
			return err
		}
		to.FunctionID = cid
	}
	if err := s.check(ctx, source.Module{Method: method, Code: code}); err != nil {
		return err
	}
	return s.store(ctx, to, source.Module{Method: method, Code: code})
}

// installArchive stores the modules of an archive. Its id is its SHA-256 unless
// one is given.
func (s *server) installArchive(ctx context.Context, to *installed, archive []byte) error {
	if to.FunctionID == "" {
		sum := sha256.Sum256(archive)
		to.FunctionID = hex.EncodeToString(sum[:])
	}
	// The archive is read to its end, and each module checked, before any counts.
	checked := map[[sha256.Size]byte]bool{}
	err := source.Unpack(ctx, meter{}, archive, func(m source.Module) error {
		sum := sha256.Sum256(m.Code)
		if checked[sum] {
			return nil
		}
		checked[sum] = true
		return s.check(ctx, m)
	})
	if err == nil {
		err = source.Unpack(ctx, meter{}, archive, func(m source.Module) error { return s.store(ctx, to, m) })
	}
	return err
}

func (s *server) installManifest(ctx context.Context, to *installed, body []byte) error {
	var request installRequest
	if err := decodeJSON(ctx, bytes.NewReader(body), &request); err != nil {
		return bodyProblem(err)
	}
	if _, wrong := queueOf(request.Topic); wrong != nil {
		return oneProblem(wrong)
	}
	if request.CID == "" || len(request.CID) > maxFunctionID {
		return stack.BadRequest("invalid request: function CID is required, of at most %d bytes", maxFunctionID)
	}
	if to.FunctionID = request.CID; request.URI != "" {
		sum := sha256.Sum256([]byte(request.URI))
		to.FunctionID = hex.EncodeToString(sum[:])
	}
	archive, err := s.sources.Archive(ctx, request.URI, request.CID)
	if errors.Is(err, source.ErrURL) {
		return stack.BadRequest("uri: %v", err)
	}
	if err != nil {
		return err
	}
	return s.installArchive(ctx, to, archive)
}

// check returns a problem for a module that can't run.
func (s *server) check(ctx context.Context, m source.Module) error {
	stack.Yield(ctx)
	return httpapi.CheckModule(ctx, s.options.CheckModule, m.Code)
}

// store stores a module.
func (s *server) store(ctx context.Context, to *installed, m source.Module) error {
	stack.Yield(ctx)
	stored, err := modules.Of(s.options.Client.Cluster()).Put(ctx, m.Code, batch.FunctionAlias(to.FunctionID, m.Method))
	if err != nil {
		return err
	}
	to.Methods = append(to.Methods, installedMethod{
		Method: m.Method, CID: stored.CID, Function: "wasm:" + stored.CID, Size: stored.Size,
	})
	return nil
}

// meter counts installations as part of the requests that ask for them.
type meter struct{}

func (meter) Reserve(ctx context.Context, n int64) error { return stack.Reserve(ctx, n) }
func (meter) Return(ctx context.Context, n int64)        { stack.Return(ctx, n) }
func (meter) Work(ctx context.Context, n int64) error    { return stack.Work(ctx, n) }
