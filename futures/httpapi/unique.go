package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/names"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Unique has a future be the only one of its kind.
type Unique struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Key        string   `json:"key,omitempty" minLength:"1" maxLength:"1024" doc:"By this key; without, by all of by"`
	By         []string `json:"by,omitempty" enum:"function,queue,arguments" doc:"By these as well" maxItems:"3"`
	Until      string   `json:"until,omitempty" enum:"end,claim,ever" default:"end" doc:"When it is free again"`
	ForMS      int64    `json:"for_ms,omitempty" minimum:"0" doc:"Not before this time after the submit"`
	OnConflict string   `json:"on_conflict,omitempty" enum:"refuse,return,replace" doc:"While there is another one"`
}

// ParseUnique returns what makes a future unique, from words: until is end, claim or
// ever, conflict is refuse, return or replace; empty ones stand for the first of them.
// Submit refuses others.
func ParseUnique(key string, by []string, until string, period time.Duration, conflict string) futures.Unique {
	u := futures.Unique{Key: key, Until: layout.UniqueUntil(until), For: period, OnConflict: futures.Conflict(conflict)}
	for _, part := range by {
		u.By = append(u.By, futures.UniquePart(part))
	}
	if until == "end" {
		u.Until = futures.UntilEnd
	}
	if conflict == "refuse" {
		u.OnConflict = futures.ConflictRefuse
	}
	return u
}

func (u *Unique) unique() (futures.Unique, error) {
	if u.ForMS > maxMillis {
		return futures.Unique{}, stack.BadRequest("unique.for_ms=%d: use at most %d", u.ForMS, maxMillis)
	}
	return ParseUnique(u.Key, u.By, u.Until, time.Duration(u.ForMS)*time.Millisecond, u.OnConflict), nil
}

// describeNotUnique names the other future for programs, unless a task of the same request has the key.
func describeNotUnique(err error, p *stack.Problem) {
	var other *futures.NotUniqueError
	if errors.As(err, &other) && !other.ID.IsZero() {
		p.About = map[string]any{"unique": HolderOf(other)}
		p.SetHeader("Location", futuresPath+"/"+other.ID.String())
	}
}

// Holder is the future that has a unique key.
type Holder struct {
	ID      futures.ID        `json:"id" format:"uuid"`
	State   string            `json:"state,omitempty" doc:"Left out if it was removed"`
	Key     string            `json:"key,omitempty" doc:"The beginning of the key, if there is one"`
	Name    layout.UniqueName `json:"name" doc:"A hash of what makes it unique"`
	Until   string            `json:"until" enum:"end,claim,ever"`
	FreeAt  *time.Time        `json:"free_at,omitempty" doc:"When it is free at the earliest"`
	Differs string            `json:"differs,omitempty" doc:"What it has that differs from what was submitted"`
}

// HolderOf is the view of the future that has a unique key.
func HolderOf(e *futures.NotUniqueError) Holder {
	h := Holder{
		ID: e.ID, Key: e.Key, Name: e.Name, Until: wordOf(e.Until), FreeAt: TimeIfAny(e.FreeAt), Differs: e.Differs,
	}
	if e.State != 0 {
		h.State = e.State.String()
	}
	return h
}

// UniqueView says how a future is unique.
type UniqueView struct {
	Key    string            `json:"key,omitempty" doc:"The beginning of the key, if there is one"`
	Name   layout.UniqueName `json:"name" doc:"A hash of what makes it unique"`
	Until  string            `json:"until" enum:"end,claim,ever"`
	FreeAt *time.Time        `json:"free_at,omitempty" doc:"When it is free at the earliest"`
}

func uniqueView(s *layout.Spec) *UniqueView {
	if s.Unique == nil {
		return nil
	}
	return &UniqueView{s.Unique.Key, s.Unique.Name, wordOf(s.Unique.Until), timeIfSet(max(s.FreeAt(), 0))}
}

// wordOf is the word for until when a future is unique.
func wordOf(until layout.UniqueUntil) string {
	if until == futures.UntilEnd {
		return "end"
	}
	return string(until)
}

const uniquePath = "/api/v1/unique"

func (s *server) registerUnique() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, uniquePath, "get-unique", "Who has a unique key",
		"Answers 404 if no future has it."), s.uniqueHolder)
	stack.Register(s.Stack, stack.Submit, operation(http.MethodDelete, uniquePath, "release-unique",
		"Release a unique key", "Frees a key that a future which is over keeps for a period or for ever. Answers 409 "+
			"for one that is not over."), s.releaseUnique)
}

type uniqueInput struct {
	Key  string `query:"key" doc:"The key, of a future that is unique by it alone" maxLength:"1024"`
	Name string `query:"name" doc:"Or the name that a conflict or the future shows" pattern:"^[0-9a-f]{32}$"`
}

func (in *uniqueInput) parse() (layout.UniqueName, error) {
	if (in.Key == "") == (in.Name == "") {
		return "", stack.BadRequest("say key or name, one of them")
	}
	if in.Name != "" {
		return layout.UniqueName(in.Name), nil
	}
	return fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: &futures.Unique{Key: in.Key}}), nil
}

func (s *server) uniqueHolder(ctx context.Context, in *uniqueInput) (*body[Holder], error) {
	return s.ofName(ctx, in, names.Of(s.client.Cluster()).Holder)
}

func (s *server) releaseUnique(ctx context.Context, in *uniqueInput) (*body[Holder], error) {
	return s.ofName(ctx, in, names.Of(s.client.Cluster()).Release)
}

func (s *server) ofName(ctx context.Context, in *uniqueInput,
	do func(context.Context, layout.UniqueName) (*futures.NotUniqueError, error),
) (*body[Holder], error) {
	name, err := in.parse()
	if err != nil {
		return nil, err
	}
	holder, err := do(ctx, name)
	if errors.Is(err, futures.ErrNotFound) && in.Key != "" {
		err = fmt.Errorf("key %.80q: %w", in.Key, err)
	}
	if err != nil {
		return nil, err
	}
	return &body[Holder]{HolderOf(holder)}, nil
}
