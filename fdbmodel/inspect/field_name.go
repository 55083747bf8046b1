package inspect

import (
	"reflect"
	"strings"
	"unicode"
)

// FieldName returns a field's name in JSON, or one derived from its Go name.
func FieldName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(f.Name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
