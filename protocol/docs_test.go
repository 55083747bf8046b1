package protocol_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

var update = flag.Bool("update", false, "write the generated parts of pages")

const wirePage = "../docs/reference/wire.md"

func TestDocsWire(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(wirePage)
	require.NoError(t, err)
	w := newWire(t)
	want := string(page)
	for _, part := range []struct{ name, text string }{
		{"limits", w.limits()},
		{"kinds", w.kinds()},
		{"dialects", w.dialects()},
		{"messages", w.messages(false)},
		{"parts", w.parts()},
		{"own", w.messages(true) + w.lines()},
	} {
		begin, end := "<!-- "+part.name+": written by make generate -->\n", "<!-- end of "+part.name+" -->\n"
		before, rest, found := strings.Cut(want, begin)
		require.True(t, found, part.name)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, part.name)
		want = before + begin + "\n" + part.text + "\n" + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(wirePage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run make generate")
}

// wire writes the parts of the page.
type wire struct {
	t      *testing.T
	source source
	// rules are those of the fields of each type, by their names on the wire.
	rules map[reflect.Type]map[string][]string
	// inParts are the types of fields, in the order in which they are met.
	inParts []reflect.Type
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, source: readSource(t), rules: map[reflect.Type]map[string][]string{}}
	for _, k := range protocol.Kinds() {
		m := filled(t, k)
		w.spread(reflect.TypeOf(m).Elem(), "", protocol.RulesOf(m))
	}
	request, response := &protocol.BlobRequest{ID: "a"}, &protocol.BlobResponse{}
	w.spread(reflect.TypeOf(*request), "", protocol.RulesOfLine(request))
	w.spread(reflect.TypeOf(*response), "", protocol.RulesOfLine(response))
	return w
}

// spread gives the rules of a message to the types that have its fields.
func (w *wire) spread(of reflect.Type, prefix string, rules map[string][]string) {
	if w.rules[of] == nil {
		w.rules[of] = map[string][]string{}
	}
	for _, f := range reflect.VisibleFields(of) {
		if len(f.Index) > 1 {
			continue
		}
		if f.Anonymous {
			w.spread(f.Type, prefix, rules)
			continue
		}
		name := wireName(f)
		if name == "-" {
			continue
		}
		for _, rule := range rules[prefix+name] {
			if !slices.Contains(w.rules[of][name], rule) {
				w.rules[of][name] = append(w.rules[of][name], rule)
			}
		}
		if part := partOf(f.Type); part != nil {
			w.spread(part, prefix+name+".", rules)
		}
	}
}

func wireName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// partOf returns the type of this package that a field consists of, or nil.
func partOf(of reflect.Type) reflect.Type {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return partOf(of.Elem())
	case reflect.Struct:
		if of != reflect.TypeFor[time.Time]() {
			return of
		}
	}
	return nil
}

// kindName says what a field is in JSON.
func (w *wire) kindName(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[time.Time](), of.Kind() == reflect.String:
		return "string"
	case of == reflect.TypeFor[protocol.Raw]():
		return "any"
	case of == reflect.TypeFor[[]byte]():
		return "base64"
	}
	switch of.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Pointer:
		return w.kindName(of.Elem())
	case reflect.Slice:
		return "list of " + w.kindName(of.Elem())
	case reflect.Map:
		return "map of " + w.kindName(of.Elem())
	case reflect.Struct:
		if !slices.Contains(w.inParts, of) {
			w.inParts = append(w.inParts, of)
		}
		return fmt.Sprintf("[%s](#%s)", of.Name(), strings.ToLower(of.Name()))
	default:
		return "number"
	}
}

// table writes the fields of a type.
func (w *wire) table(of reflect.Type) string {
	var b strings.Builder
	b.WriteString("| field | is | limits | meaning |\n| --- | --- | --- | --- |\n")
	w.rows(&b, of)
	return b.String()
}

func (w *wire) rows(b *strings.Builder, of reflect.Type) {
	for _, f := range reflect.VisibleFields(of) {
		if f.Anonymous && f.Type != reflect.TypeFor[protocol.Envelope]() && len(f.Index) == 1 {
			w.rows(b, f.Type)
		}
		name := wireName(f)
		if len(f.Index) > 1 || f.Anonymous || name == "-" {
			continue
		}
		limits := strings.Join(w.rules[of][name], ", ")
		kind := w.kindName(f.Type)
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, kind, limits, w.meaning(of, f))
	}
}

func (w *wire) meaning(of reflect.Type, f reflect.StructField) string {
	if of.PkgPath() != reflect.TypeFor[protocol.Envelope]().PkgPath() {
		return "that of the variable"
	}
	return w.source.fieldText(w.t, of.Name(), f.Name, wireNames(of))
}

func wireNames(of reflect.Type) map[string]string {
	names := map[string]string{}
	for _, f := range reflect.VisibleFields(of) {
		if name := wireName(f); name != "" && name != "-" {
			names[f.Name] = name
		}
	}
	return names
}

func (w *wire) limits() string {
	var b strings.Builder
	b.WriteString("| limit | on streams | published | meaning |\n| --- | --- | --- | --- |\n")
	direct, gossip := reflect.ValueOf(protocol.DirectLimits()), reflect.ValueOf(protocol.GossipLimits())
	for i := range direct.NumField() {
		name := direct.Type().Field(i).Name
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", name, direct.Field(i).Int(), gossip.Field(i).Int(),
			w.source.fieldText(w.t, "Limits", name, nil))
	}
	return b.String()
}

func (w *wire) kinds() string {
	var b strings.Builder
	b.WriteString("| message | from | to | stream | published | answered by |\n| --- | --- | --- | --- | --- | --- |\n")
	yes := map[bool]string{true: "yes", false: "no"}
	for _, k := range protocol.Kinds() {
		answer := "–"
		if k.Answer != "" {
			answer = link(k.Answer)
		}
		stream := yes[k.Direct]
		if k.Own {
			stream = "Futura's"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", link(k.Type), k.From, k.To, stream, yes[k.Published], answer)
	}
	return b.String()
}

func link(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }

// dialects writes which fields a dialect has that another has not.
func (w *wire) dialects() string {
	var b strings.Builder
	b.WriteString("| message | chunk | strand | futura |\n| --- | --- | --- | --- |\n")
	for _, k := range protocol.Kinds() {
		if k.Own {
			continue
		}
		fields, common := map[protocol.Dialect][]string{}, map[string]int{}
		for _, d := range dialects() {
			data, err := protocol.Encode(filled(w.t, k), d)
			require.NoError(w.t, err)
			var object map[string]json.RawMessage
			require.NoError(w.t, json.Unmarshal(data, &object))
			for name := range object {
				fields[d] = append(fields[d], name)
				common[name]++
			}
		}
		var cells []string
		for _, d := range dialects() {
			names := slices.DeleteFunc(fields[d], func(name string) bool { return common[name] == len(dialects()) })
			slices.Sort(names)
			cell := "–"
			if len(names) > 0 {
				cell = "`" + strings.Join(names, "`, `") + "`"
			}
			cells = append(cells, cell)
		}
		if strings.Join(cells, "") != "–––" {
			fmt.Fprintf(&b, "| %s | %s |\n", link(k.Type), strings.Join(cells, " | "))
		}
	}
	return b.String()
}

// messages writes the messages of b7s, or Futura's own.
func (w *wire) messages(own bool) string {
	var b strings.Builder
	for _, k := range protocol.Kinds() {
		if k.Own == own {
			of := reflect.TypeOf(k.New()).Elem()
			fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", k.Type, w.source.typeText(w.t, of.Name(), wireNames(of)), w.table(of))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lines writes the two lines of a blob stream.
func (w *wire) lines() string {
	var b strings.Builder
	for _, of := range []reflect.Type{reflect.TypeFor[protocol.BlobRequest](), reflect.TypeFor[protocol.BlobResponse]()} {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s", of.Name(), w.source.typeText(w.t, of.Name(), wireNames(of)), w.table(of))
	}
	return b.String()
}

// parts writes the types of fields: first those of messages, then of each other.
func (w *wire) parts() string {
	w.inParts = nil
	w.messages(false)
	w.messages(true)
	var b strings.Builder
	for i := 0; i < len(w.inParts); i++ {
		of := w.inParts[i]
		text := "A variable of the environment."
		if of.PkgPath() == reflect.TypeFor[protocol.Envelope]().PkgPath() {
			text = w.source.typeText(w.t, of.Name(), wireNames(of))
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", of.Name(), text, w.table(of))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// filled returns a valid message of a kind in which no field is empty.
func filled(t *testing.T, k protocol.Kind) protocol.Message {
	m := k.New()
	fill(t, reflect.ValueOf(m).Elem(), "")
	if r, ok := m.(*protocol.ExecuteBatchResponse); ok {
		r.AsSingle = false
	}
	_, err := protocol.Encode(m, protocol.DialectFutura)
	require.NoError(t, err)
	return m
}

func fill(t *testing.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if wireName(v.Type().Field(i)) != "-" {
				fill(t, v.Field(i), wireName(v.Type().Field(i)))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[protocol.Raw]() {
			v.SetBytes([]byte("1"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(t, item, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("890dc99611a94ed264bfbb1c67b77255"), item)
	case reflect.String:
		text := "a"
		if v.Type() == reflect.TypeFor[protocol.Code]() {
			text = "200"
		}
		switch name {
		case "consensus_algorithm":
			text = "raft"
		case "incarnation":
			text = "00c0ffee00c0ffee"
		}
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint, reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		t.Fatalf("no value for %s, a %s", name, v.Type())
	}
}
