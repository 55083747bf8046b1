package stack_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// lost is a content of which the second half can't be read any more.
type lost struct{ *bytes.Reader }

func (l lost) Read(p []byte) (int, error) {
	if left := int64(l.Len()) - l.Size()/2; left > 0 {
		return l.Reader.Read(p[:min(int64(len(p)), left)])
	}
	return 0, errors.New("the worker that holds it is gone")
}

// TestAnswersThatCannotBeCompletedAreCut reads answers whose content ends early, or whose turn does not come, as they
// are and compressed.
func TestAnswersThatCannotBeCompletedAreCut(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	holding, release := make(chan struct{}, 10), make(chan struct{})
	s := stack.New(stack.Options{Limits: stack.Limits{StoreTime: 10 * time.Millisecond, Turns: 1, ClientTurns: 1}})
	route := func(path string, patience int, handle func(http.ResponseWriter, *http.Request) error) {
		s.Handle(stack.Route{Permission: stack.Read, Handle: handle, Operation: huma.Operation{
			Method: http.MethodGet, Path: path, OperationID: path, Metadata: map[string]any{stack.Patience: patience},
		}})
	}
	route("/whole", stack.Endless, func(w http.ResponseWriter, r *http.Request) error {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return nil
	})
	route("/lost", stack.Endless, func(w http.ResponseWriter, r *http.Request) error {
		http.ServeContent(w, r, "", time.Time{}, lost{bytes.NewReader(content)})
		return nil
	})
	route("/hold", stack.Endless, func(_ http.ResponseWriter, r *http.Request) error {
		err := stack.Work(r.Context(), 1<<20)
		holding <- struct{}{}
		<-release
		return err
	})
	route("/late", 1, func(w http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		for piece := content; len(piece) > 0; piece = piece[64<<10:] {
			if _, err := w.Write(piece[:64<<10]); err != nil {
				return nil
			}
		}
		return nil
	})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	read := func(method, path, encoding string) ([]byte, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		if encoding != "" {
			r.Header.Set("Accept-Encoding", encoding) // else the client asks for gzip and unpacks it
		}
		response, err := server.Client().Do(r)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return io.ReadAll(response.Body)
	}
	for _, encoding := range []string{"", "identity"} {
		got, err := read(http.MethodGet, "/whole", encoding)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
		got, err = read(http.MethodHead, "/lost", encoding)
		require.NoError(t, err)
		require.Empty(t, got)
		got, err = read(http.MethodGet, "/lost", encoding)
		require.Error(t, err, "%d bytes of %d with the encoding %q", len(got), len(content), encoding)
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		_, _ = read(http.MethodGet, "/hold", "")
	}()
	<-holding
	got, err := read(http.MethodGet, "/late", "")
	require.Error(t, err, "%d bytes of %d whose turn did not come", len(got), len(content))
	close(release)
	<-held
}
