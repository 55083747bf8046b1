package ferrettest

import (
	"fmt"
	"net"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// planner answers requests that name documents by their keys, which a server of
// MongoDB looks up. This server does so only for a query of exactly one key, and
// otherwise reads the whole collection. So each document is read by its key
// alone, compared here, and changed by its key alone. No other request may come
// in between.
type planner struct {
	server   net.Conn
	database string
	c        *command
}

// statementsAtOnce is how many statements of an update the server can take.
const statementsAtOnce = 40

// plan answers a request, or returns nil for one that the server should.
func (p *proxy) plan(server net.Conn, request []byte, c *command) ([]byte, error) {
	database, ok := c.body.Lookup("$db").StringValueOK()
	if !ok {
		return nil, nil
	}
	q := &planner{server: server, database: database, c: c}
	var answer bson.D
	var err error
	switch c.name {
	case "find":
		answer, err = q.find()
	case "update":
		answer, err = q.update(p.changed)
	}
	if err != nil || answer == nil {
		return nil, err
	}
	return message(request, answer)
}

// run has the server run a command.
func (q *planner) run(body bson.D) (bson.Raw, error) {
	request, err := message(make([]byte, headerSize), append(body, bson.E{Key: "$db", Value: q.database}))
	if err != nil {
		return nil, err
	}
	if _, err := q.server.Write(request); err != nil {
		return nil, err
	}
	answer, err := readMessage(q.server)
	if err != nil {
		return nil, err
	}
	got, _, err := cutDocument(answer[bodyAt:])
	if err != nil {
		return nil, err
	}
	if ok, is := got.Lookup("ok").AsFloat64OK(); !is || ok != 1 {
		return nil, fmt.Errorf("%v: %v", body, got)
	}
	return got, nil
}

// read returns the document with a key, nil if there is none.
func (q *planner) read(collection string, key string) (bson.Raw, error) {
	got, err := q.run(bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: bson.D{{Key: "_id", Value: key}}},
		{Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}})
	if err != nil {
		return nil, err
	}
	found, err := got.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].Document(), nil
}

// find answers a find by keys with whole documents, whatever fields it asks for.
func (q *planner) find() (bson.D, error) {
	collection, filter := q.c.body.Lookup("find").StringValue(), q.c.body.Lookup("filter").Document()
	keys, ok := keysOf(filter)
	if !ok {
		return nil, nil
	}
	found := []bson.Raw{}
	for _, key := range keys {
		document, err := q.read(collection, key)
		if err != nil {
			return nil, err
		}
		if document != nil && matches(document, filter) {
			found = append(found, document)
		}
	}
	if sort, err := q.c.body.LookupErr("sort"); err == nil {
		by, err := sort.Document().IndexErr(0)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(found, func(a, b bson.Raw) int {
			return int(by.Value().AsInt64()) * compare(a.Lookup(by.Key()), b.Lookup(by.Key()))
		})
	}
	if limit, is := q.c.body.Lookup("limit").AsInt64OK(); is && limit > 0 && limit < int64(len(found)) {
		found = found[:limit]
	}
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(0)}, {Key: "ns", Value: q.database + "." + collection},
		{Key: "firstBatch", Value: found},
	}}, {Key: "ok", Value: float64(1)}}, nil
}

// update makes the changes of statements that name keys, in their order.
func (q *planner) update(changed func(collection string, update bson.Raw)) (bson.D, error) {
	collection := q.c.body.Lookup("update").StringValue()
	var statements []bson.Raw
	for _, s := range q.c.sections {
		statements = append(statements, s.documents...)
	}
	for _, s := range statements {
		if _, ok := keysOf(s.Lookup("q").Document()); !ok {
			return nil, nil
		}
	}
	n := int32(0)
	var pending bson.A
	touched := map[string]bool{}
	flush := func() error {
		if len(pending) == 0 {
			return nil
		}
		got, err := q.run(bson.D{{Key: "update", Value: collection}, {Key: "updates", Value: pending}})
		pending, touched = nil, map[string]bool{}
		if err != nil {
			return err
		}
		if wrong, err := got.LookupErr("writeErrors"); err == nil {
			return fmt.Errorf("update %s: %v", collection, wrong)
		}
		n += got.Lookup("n").Int32()
		return nil
	}
	for _, s := range statements {
		filter, update := s.Lookup("q").Document(), s.Lookup("u").Document()
		keys, _ := keysOf(filter)
		multi, _ := s.Lookup("multi").BooleanOK()
		for _, key := range keys {
			if touched[key] { // by a statement before, which counts
				if err := flush(); err != nil {
					return nil, err
				}
			}
			document, err := q.read(collection, key)
			if err != nil {
				return nil, err
			}
			if document == nil || !matches(document, filter) {
				continue
			}
			touched[key] = true
			pending = append(pending, bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: key}}}, {Key: "u", Value: update}})
			if changed != nil {
				changed(collection, update)
			}
			if len(pending) == statementsAtOnce {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			if !multi {
				break
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return bson.D{{Key: "n", Value: n}, {Key: "nModified", Value: n}, {Key: "ok", Value: float64(1)}}, nil
}

// keysOf returns the keys that a filter names, if it does and if all of it can be
// compared here.
func keysOf(filter bson.Raw) ([]string, bool) {
	elements, err := filter.Elements()
	if err != nil {
		return nil, false
	}
	for _, e := range elements {
		if !canCompare(e) {
			return nil, false
		}
	}
	value, err := filter.LookupErr("_id")
	if err != nil {
		return nil, false
	}
	if key, ok := value.StringValueOK(); ok {
		return []string{key}, true
	}
	operators, ok := value.DocumentOK()
	if !ok {
		return nil, false
	}
	in, err := operators.LookupErr("$in")
	if err != nil {
		return nil, false
	}
	values, err := in.Array().Values()
	keys := make([]string, len(values))
	for i, v := range values {
		keys[i] = v.StringValue()
	}
	return keys, err == nil
}

// operators that matches knows, besides equality.
var operators = []string{"$in", "$gt", "$gte", "$lt", "$lte", "$ne", "$exists"}

func canCompare(e bson.RawElement) bool {
	if e.Key()[0] == '$' {
		return false
	}
	inner, ok := e.Value().DocumentOK()
	if !ok {
		return true
	}
	elements, err := inner.Elements()
	return err == nil && !slices.ContainsFunc(elements, func(o bson.RawElement) bool {
		return !slices.Contains(operators, o.Key())
	})
}

// matches reports whether a document has what a filter asks for.
func matches(document, filter bson.Raw) bool {
	elements, _ := filter.Elements()
	for _, e := range elements {
		has, missing := document.LookupErr(e.Key())
		tests, ok := e.Value().DocumentOK()
		if !ok {
			if missing != nil || compare(has, e.Value()) != 0 {
				return false
			}
			continue
		}
		each, _ := tests.Elements()
		for _, o := range each {
			if !holds(has, missing == nil, o.Key(), o.Value()) {
				return false
			}
		}
	}
	return true
}

// holds reports whether a field's value, if it is there, passes a test.
func holds(has bson.RawValue, is bool, operator string, want bson.RawValue) bool {
	switch operator {
	case "$exists":
		return is == want.Boolean()
	case "$ne":
		return !is || compare(has, want) != 0
	case "$in":
		values, _ := want.Array().Values()
		return is && slices.ContainsFunc(values, func(v bson.RawValue) bool { return compare(has, v) == 0 })
	}
	if !is || has.IsNumber() != want.IsNumber() || !has.IsNumber() && has.Type != want.Type {
		return false
	}
	switch order := compare(has, want); operator {
	case "$gt":
		return order > 0
	case "$gte":
		return order >= 0
	case "$lt":
		return order < 0
	default:
		return order <= 0
	}
}

// compare compares values of the kinds that documents here have.
func compare(a, b bson.RawValue) int {
	switch {
	case a.IsNumber() && b.IsNumber():
		return int(a.AsInt64() - b.AsInt64())
	case a.Type == bson.TypeString && b.Type == bson.TypeString:
		return slices.Compare([]byte(a.StringValue()), []byte(b.StringValue()))
	case a.Type == bson.TypeDateTime && b.Type == bson.TypeDateTime:
		return int(a.DateTime() - b.DateTime())
	case a.Equal(b):
		return 0
	default:
		return int(a.Type) - int(b.Type)
	}
}
