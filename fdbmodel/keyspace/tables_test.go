package keyspace_test

import (
	"fmt"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/layout"
	"reflect"
	"strings"
)

// keyTable returns the table of all keys as Markdown.
func keyTable() string {
	var b strings.Builder
	b.WriteString("| kind | key | value | holds | written by | in a move |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	kinds := keyspace.Table().Kinds()
	for i := range kinds {
		k := &kinds[i]
		moves := "copied"
		switch k.Moves {
		case layout.Restamped:
			moves = "copied, new stamp"
		case layout.LeftOut:
			moves = "not copied"
		}
		format := k.Format.String()
		if k.Called != "" {
			format = k.Called
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", k.Name, k.Shape(), format, k.Holds, k.Writer, moves)
	}
	return b.String()
}

// fieldTable returns the short field names of all records as Markdown.
func fieldTable() string {
	var b strings.Builder
	b.WriteString("| kind | fields |\n| --- | --- |\n")
	kinds := keyspace.Table().Kinds()
	for i := range kinds {
		if kinds[i].Record == nil {
			continue
		}
		if fields := fieldNames(reflect.TypeOf(kinds[i].Record()).Elem()); fields != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", kinds[i].Name, fields)
		}
	}
	fmt.Fprintf(&b, "| a reference | %s |\n", fieldNames(reflect.TypeFor[layout.ChunkRef]()))
	return b.String()
}

// fieldNames lists a record's fields in order, including those of nested
// structs. References and whole records have their own rows.
func fieldNames(t reflect.Type) string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		short, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		switch {
		case f.Anonymous && short == "":
			names = append(names, fieldNames(f.Type))
		case short == "" || short == "-":
		case f.Type.Kind() == reflect.Struct:
			names = append(names, fmt.Sprintf("`%s` %s (%s)", short, inspect.FieldName(f), fieldNames(f.Type)))
		default:
			names = append(names, fmt.Sprintf("`%s` %s", short, inspect.FieldName(f)))
		}
	}
	return strings.Join(names, " · ")
}
