package stack

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var pageTemplate string

// pageSection has the operations of one tag.
type pageSection struct {
	Name       string
	Operations []pageOperation
}

// pageOperation is an operation as people read it.
type pageOperation struct {
	*huma.Operation
	Fields []pageField
}

// pageSchema is a type with its fields.
type pageSchema struct {
	Name   string
	Fields []pageField
}

// pageField is a parameter, a body, an answer, or a field of a type.
type pageField struct{ Name, Kind, Text string }

// pageOf returns the description as a page that loads nothing.
func pageOf(api *huma.OpenAPI) []byte {
	sections := map[string]*pageSection{}
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		item := api.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			shown := *op
			shown.Path = path
			tag := "other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			if sections[tag] == nil {
				sections[tag] = &pageSection{Name: tag}
			}
			sections[tag].Operations = append(sections[tag].Operations, pageOperation{&shown, fieldsOf(&shown)})
		}
	}
	var list []*pageSection
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		list = append(list, sections[name])
	}
	var types []pageSchema
	schemas := api.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		shown := pageSchema{Name: name}
		for _, field := range slices.Sorted(maps.Keys(schemas[name].Properties)) {
			of := schemas[name].Properties[field]
			shown.Fields = append(shown.Fields, pageField{field, kindOf(of), of.Description})
		}
		types = append(types, shown)
	}
	var page bytes.Buffer
	t := template.Must(template.New("page").Parse(pageTemplate))
	if err := t.Execute(&page, map[string]any{"API": api.Info, "Sections": list, "Types": types}); err != nil {
		return []byte("see /openapi.json")
	}
	return page.Bytes()
}

// fieldsOf lists the inputs and outputs of an operation.
func fieldsOf(op *huma.Operation) (fields []pageField) {
	for _, p := range op.Parameters {
		fields = append(fields, pageField{p.Name, p.In + ", " + kindOf(p.Schema), p.Description})
	}
	content := func(name string, of map[string]*huma.MediaType) {
		for _, media := range slices.Sorted(maps.Keys(of)) {
			fields = append(fields, pageField{name, media, kindOf(of[media].Schema)})
		}
	}
	if op.RequestBody != nil {
		content("body", op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		content(status, op.Responses[status].Content)
	}
	return fields
}

// kindOf names a schema's type.
func kindOf(s *huma.Schema) string {
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		return s.Ref[len("#/components/schemas/"):]
	case s.Type == "array":
		return "list of " + kindOf(s.Items)
	case s.Type == "":
		return "any"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	default:
		return s.Type
	}
}
