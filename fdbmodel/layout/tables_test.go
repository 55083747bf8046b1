package layout

import (
	"fmt"
	"reflect"
	"strings"
)

// KeyTable returns the table of all keys as Markdown.
func KeyTable() string {
	var b strings.Builder
	b.WriteString("| kind | key | value | holds | written by | in a move |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	moves := map[carriage]string{carried: "copied", Restamped: "copied, new stamp", LeftOut: "not copied"}
	kinds := Table()
	for i := range kinds {
		k := &kinds[i]
		format := k.Format.String()
		if k.Called != "" {
			format = k.Called
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", k.Name, k.Shape(), format, k.holds, k.writer, moves[k.Moves])
	}
	return b.String()
}

// FieldTable returns the short field names of all records as Markdown.
func FieldTable() string {
	var b strings.Builder
	b.WriteString("| kind | fields |\n| --- | --- |\n")
	kinds := Table()
	for i := range kinds {
		if kinds[i].Record == nil {
			continue
		}
		if fields := fieldNames(reflect.TypeOf(kinds[i].Record()).Elem()); fields != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", kinds[i].Name, fields)
		}
	}
	fmt.Fprintf(&b, "| a reference | %s |\n", fieldNames(reflect.TypeFor[ChunkRef]()))
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
			names = append(names, fmt.Sprintf("`%s` %s (%s)", short, FullName(f), fieldNames(f.Type)))
		default:
			names = append(names, fmt.Sprintf("`%s` %s", short, FullName(f)))
		}
	}
	return strings.Join(names, " · ")
}
