package protocol_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/protocol"
)

func dialects() []protocol.Dialect {
	return []protocol.Dialect{protocol.DialectChunk, protocol.DialectStrand, protocol.DialectFutura}
}

// isDocumented reports whether an error is one that Decode says it returns.
func isDocumented(err error) bool {
	return slices.ContainsFunc([]error{
		protocol.ErrMalformed, protocol.ErrUnknownType, protocol.ErrLimit, protocol.ErrInvalid,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// TestMessagesSurviveTheWire draws every field of every message.
func TestMessagesSurviveTheWire(t *testing.T) {
	t.Parallel()
	for _, k := range protocol.Kinds() {
		empty := k.New()
		t.Run(empty.Type(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				m := drawMessage(t, empty)
				data, err := protocol.Encode(m, protocol.DialectFutura)
				require.NoError(t, err)
				got, err := protocol.Decode(data)
				require.NoError(t, err, "%s", data)
				copyDialect(m, got)
				require.Equal(t, m, got)
			})
		})
	}
}

// drawMessage draws a valid message of a type.
func drawMessage(t *rapid.T, of protocol.Message) protocol.Message {
	value := reflect.New(reflect.TypeOf(of).Elem())
	drawInto(t, value.Elem(), "")
	m := value.Interface().(protocol.Message)
	switch m := m.(type) {
	case *protocol.WorkOrderBatch:
		if len(m.Items) > 0 {
			m.Arguments = slices.Repeat(m.Arguments[:1], len(m.Items))
		}
	case *protocol.ExecuteBatchResponse:
		m.AsSingle = len(m.Chunks) > 0 && rapid.Bool().Draw(t, "as single")
	}
	return m
}

func drawInto(t *rapid.T, v reflect.Value, name string) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, name), 7).UTC()))
		return
	case reflect.TypeFor[protocol.Raw]():
		v.SetBytes([]byte(rapid.SampledFrom([]string{`{"a":[1,"x"]}`, `"text"`, `7`}).Draw(t, name)))
		return
	case reflect.TypeFor[protocol.Dialect]():
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag != "-" {
				drawInto(t, v.Field(i), tag)
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			drawInto(t, v.Elem(), name)
		}
	case reflect.Slice:
		drawSlice(t, v, name)
	case reflect.Map:
		for range rapid.IntRange(0, 2).Draw(t, name) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			item := reflect.New(v.Type().Elem()).Elem()
			drawInto(t, item, name)
			v.SetMapIndex(reflect.ValueOf(drawKey(t, name)), item)
		}
	default:
		drawScalar(t, v, name)
	}
}

// drawSlice draws a list; where its field must not be empty, at least one entry.
func drawSlice(t *rapid.T, v reflect.Value, name string) {
	isLists := v.Type() == reflect.TypeFor[[][]string]()
	least := 0
	if isLists {
		least = 1
	}
	n := rapid.IntRange(least, 3).Draw(t, name)
	if n == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		drawInto(t, v.Index(i), name)
	}
}

func drawScalar(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(drawText(t, v.Type(), name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(0, 255).Draw(t, name))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, name)))
	case reflect.Uint, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, 2).Draw(t, name))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(0, 1).Draw(t, name))
	default:
		t.Fatalf("no values for %s, a %s", name, v.Type())
	}
}

func drawText(t *rapid.T, of reflect.Type, name string) string {
	hex := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}(:[0-9A-F]{3})?`)
	switch {
	case of == reflect.TypeFor[protocol.Code]():
		return rapid.SampledFrom([]string{"", "200", "500", "520"}).Draw(t, name)
	case slices.Contains([]string{"request_id", "chunk_id", "running", "wanted", "unknown", "id"}, name):
		return hex.Draw(t, name)
	case name == "incarnation":
		return rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, name)
	case slices.Contains([]string{"function_id", "method", "cid", "module"}, name):
		return rapid.StringMatching(`[a-z0-9._:-]{1,3}[a-z0-9]`).Filter(func(s string) bool {
			return !strings.Contains(s, "..")
		}).Draw(t, name)
	case name == "consensus_algorithm":
		return rapid.SampledFrom([]string{"", "raft", "pbft"}).Draw(t, name)
	case slices.Contains([]string{"stdout", "stderr", "stdin", "arguments", "message", "reason", "value"}, name):
		return rapid.SampledFrom([]string{"", "a\nb", "<ü & \u2028>", "\x00", `"\`, "long " + strings.Repeat("x", 99)}).
			Draw(t, name)
	default:
		return rapid.SampledFrom([]string{"", "name", "ü b", `<"\&>`}).Draw(t, name)
	}
}

func drawKey(t *rapid.T, name string) string {
	switch name {
	case "chunks":
		return rapid.StringMatching(`[0-9a-f:-]{1,128}`).Draw(t, name)
	case "results":
		return rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, name)
	default:
		return rapid.SampledFrom([]string{"a", "b", "traceparent", "ü"}).Draw(t, name)
	}
}

// copyDialect makes a message one that was read as another was.
func copyDialect(to, from protocol.Message) {
	if d := reflect.ValueOf(to).Elem().FieldByName("Dialect"); d.IsValid() {
		d.Set(reflect.ValueOf(from).Elem().FieldByName("Dialect"))
	}
}
