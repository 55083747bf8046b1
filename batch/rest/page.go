package rest

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var pageTemplate string

// pageSection is the operations of one tag.
type pageSection struct {
	Name       string
	Operations []pageOperation
}

// pageOperation is an operation as people read it.
type pageOperation struct {
	ID, Method, Path, Summary, Text string
	Parameters                      []pageField
	Bodies, Answers                 []pageBody
}

// pageBody is the content of one media type.
type pageBody struct {
	Label  string
	Fields []pageField
}

// pageField is a parameter, or a field of a body with its path.
type pageField struct {
	Name, Kind, Text string
	Required         bool
}

// maxFieldDepth is how deep the fields of a body are shown.
const maxFieldDepth = 6

// pageOf returns the description as a page that loads nothing.
func pageOf(api *huma.OpenAPI) []byte {
	sections := map[string]*pageSection{}
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		item := api.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			tag := "other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			if sections[tag] == nil {
				sections[tag] = &pageSection{Name: tag}
			}
			sections[tag].Operations = append(sections[tag].Operations, pageOperationOf(api, path, op))
		}
	}
	var list []*pageSection
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		list = append(list, sections[name])
	}
	var page bytes.Buffer
	t := template.Must(template.New("page").Parse(pageTemplate))
	if err := t.Execute(&page, map[string]any{"API": api.Info, "Sections": list}); err != nil {
		return []byte("see /openapi.json")
	}
	return page.Bytes()
}

func pageOperationOf(api *huma.OpenAPI, path string, op *huma.Operation) pageOperation {
	shown := pageOperation{
		ID: op.OperationID, Method: op.Method, Path: path, Summary: op.Summary, Text: op.Description,
	}
	for _, p := range op.Parameters {
		shown.Parameters = append(shown.Parameters, pageField{
			Name: p.Name, Kind: p.In + ", " + kindOf(api, p.Schema), Text: p.Description, Required: p.Required,
		})
	}
	if op.RequestBody != nil {
		for _, media := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
			shown.Bodies = append(shown.Bodies, pageBody{media, fieldsOf(api, op.RequestBody.Content[media].Schema, "", 0)})
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answer := op.Responses[status]
		if len(answer.Content) == 0 {
			shown.Answers = append(shown.Answers, pageBody{status, nil})
		}
		for _, media := range slices.Sorted(maps.Keys(answer.Content)) {
			shown.Answers = append(shown.Answers, pageBody{
				status + ", " + media, fieldsOf(api, answer.Content[media].Schema, "", 0),
			})
		}
	}
	return shown
}

// resolved follows a reference.
func resolved(api *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	if s != nil && s.Ref != "" {
		return api.Components.Schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// kindOf names a schema's type.
func kindOf(api *huma.OpenAPI, s *huma.Schema) string {
	s = resolved(api, s)
	switch {
	case s == nil:
		return "any"
	case s.Type == "array":
		return "list of " + kindOf(api, s.Items)
	case s.Type == "":
		return "any"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	default:
		return s.Type
	}
}

// fieldsOf lists the fields of a schema, with those inside behind them.
func fieldsOf(api *huma.OpenAPI, s *huma.Schema, prefix string, depth int) (fields []pageField) {
	s = resolved(api, s)
	for s != nil && s.Type == "array" {
		s, prefix = resolved(api, s.Items), prefix+"[]"
	}
	if s == nil || depth == maxFieldDepth {
		return nil
	}
	if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
		return fieldsOf(api, of, prefix+".KEY", depth)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inner := s.Properties[name]
		full := strings.TrimPrefix(prefix+"."+name, ".")
		text := inner.Description
		if target := resolved(api, inner); text == "" && target != nil {
			text = target.Description
		}
		fields = append(fields, pageField{full, kindOf(api, inner), text, slices.Contains(s.Required, name)})
		fields = append(fields, fieldsOf(api, inner, full, depth+1)...)
	}
	return fields
}
