package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const functionsPath = "/api/v1/functions"

// Function is a stored WASM module.
type Function struct {
	Function string     `json:"function" doc:"The name that futures have: wasm:CID"`
	CID      string     `json:"cid"`
	Size     int64      `json:"size" doc:"Bytes"`
	Aliases  []string   `json:"aliases" doc:"Names that stand for it: wasm:ALIAS"`
	StoredAt *time.Time `json:"stored_at,omitempty"`
}

// FunctionOf returns the view of a module.
func FunctionOf(m *layout.Module) Function {
	f := Function{Function: "wasm:" + m.CID, CID: m.CID, Size: m.Size, Aliases: append([]string{}, m.Aliases...)}
	if m.StoredAt != 0 {
		at := timeOf(m.StoredAt)
		f.StoredAt = &at
	}
	return f
}

func (s *server) registerFunctions(api huma.API) {
	put := operation(http.MethodPost, functionsPath, "put-function", "Store a WASM module",
		"The body is the module, up to 64 MiB. It is stored under its content id; storing it again changes nothing.")
	put.MaxBodyBytes = fdbmodel.MaxModule + 1
	put.DefaultStatus = http.StatusCreated
	put.Middlewares = huma.Middlewares{s.limitUploads}
	huma.Register(api, put, s.putFunction)
	huma.Register(api, operation(http.MethodGet, functionsPath, "list-functions", "List the stored modules",
		"Go functions are the workers': see /workers."), s.listFunctions)
}

// limitUploads bounds the memory that modules take while they arrive.
func (s *server) limitUploads(ctx huma.Context, next func(huma.Context)) {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
		next(ctx)
	case <-ctx.Context().Done():
	}
}

type putFunctionInput struct {
	Alias   string `query:"alias" doc:"A name that stands for the module from now on" maxLength:"128"`
	RawBody []byte `contentType:"application/wasm" required:"true"`
}

type functionOutput struct {
	Body Function
}

func (s *server) putFunction(ctx context.Context, in *putFunctionInput) (*functionOutput, error) {
	if in.Alias != "" {
		if err := layout.CheckAlias(in.Alias); err != nil {
			return nil, problemOf(err)
		}
	}
	if s.options.CheckModule != nil {
		cid, err := fdbmodel.ModuleCID(in.RawBody)
		if err != nil {
			return nil, problemOf(err)
		}
		if err := s.options.CheckModule(ctx, cid, in.RawBody); err != nil {
			if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
				return nil, problemOf(err)
			}
			return nil, NewProblem(http.StatusUnprocessableEntity, "bad_module", nil, "%s", err)
		}
	}
	m, err := s.client.Cluster().PutModule(ctx, in.RawBody, in.Alias)
	if err != nil {
		return nil, problemOf(err)
	}
	return &functionOutput{FunctionOf(&m)}, nil
}

type functionsOutput struct {
	Body struct {
		Functions []Function `json:"functions"`
	}
}

func (s *server) listFunctions(ctx context.Context, _ *struct{}) (*functionsOutput, error) {
	modules, err := s.client.Cluster().Modules(ctx)
	if err != nil {
		return nil, problemOf(err)
	}
	out := &functionsOutput{}
	out.Body.Functions = make([]Function, len(modules))
	for i := range modules {
		out.Body.Functions[i] = FunctionOf(&modules[i])
	}
	return out, nil
}
