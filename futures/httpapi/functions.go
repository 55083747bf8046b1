package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const functionsPath = "/api/v1/functions"

// Function is a stored WASM module.
type Function struct {
	Function string     `json:"function" doc:"The name for futures: wasm:CID"`
	CID      string     `json:"cid"`
	Size     int64      `json:"size" doc:"Bytes; 0 if the record can't be read"`
	Aliases  []string   `json:"aliases" doc:"Names that stand for it: wasm:ALIAS"`
	StoredAt *time.Time `json:"stored_at,omitempty"`
}

// FunctionOf returns the view of a module.
func FunctionOf(m *layout.Module) Function {
	return Function{"wasm:" + m.CID, m.CID, m.Size, append([]string{}, m.Aliases...), timeIfSet(m.StoredAt)}
}

func (s *server) registerFunctions() {
	put := operation(http.MethodPost, functionsPath, "put-function", "Store a WASM module",
		"The body is the module, up to 64 MiB. It is stored under its content id; storing it again changes nothing.")
	put.MaxBodyBytes = modules.MaxSize + 1
	put.DefaultStatus = http.StatusCreated
	put.Metadata = map[string]any{stack.Patience: stack.Large}
	stack.Register(s.Stack, stack.Admin, put, s.putFunction)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, functionsPath, "list-functions",
		"List the stored modules", "Go functions are the workers': see /workers."), s.listFunctions)
}

type putFunctionInput struct {
	Alias   string `query:"alias" doc:"Another name for the module" maxLength:"128"`
	RawBody []byte `contentType:"application/wasm" required:"true"`
}

func (s *server) putFunction(ctx context.Context, in *putFunctionInput) (*body[Function], error) {
	if in.Alias != "" {
		if err := layout.CheckAlias(in.Alias); err != nil {
			return nil, err
		}
	}
	if err := CheckModule(ctx, s.checkModule, in.RawBody); err != nil {
		return nil, err
	}
	return viewed(FunctionOf)(modules.Of(s.client.Cluster()).Put(ctx, in.RawBody, in.Alias))
}

// CheckModule returns a problem for a module that check rejects. A nil check
// accepts all.
func CheckModule(ctx context.Context, check func(ctx context.Context, cid string, module []byte) error, code []byte,
) error {
	if check == nil {
		return nil
	}
	cid, err := modules.CID(code)
	if err != nil {
		return err
	}
	err = check(ctx, cid, code)
	if err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return stack.NewProblem(http.StatusUnprocessableEntity, "bad_module", nil, "%s", err)
}

type functionsOutputBody struct {
	Functions []Function `json:"functions"`
}

func (s *server) listFunctions(ctx context.Context, _ *struct{}) (*body[functionsOutputBody], error) {
	modules, err := modules.Of(s.client.Cluster()).List(ctx)
	return answerWith(functionsOutputBody{viewsOf(modules, FunctionOf)}, err)
}
