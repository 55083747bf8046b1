package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var book = futures.Define[string, string]("trip", futures.Retries(20))

// call does something under a key, by which the other side knows a repetition. It returns why it was refused, "" if
// it is done. After an error it is tried again.
type call func(ctx context.Context, key string) (refused string, err error)

// part is a part of a saga, and what undoes it.
type part struct {
	name     string
	do, undo call
}

// trip books a flight and a room, has a person approve, and pays.
func trip(ctx context.Context, a *agency, to string) (string, error) {
	return "a trip to " + to, saga(ctx,
		part{"flight", a.book, a.cancel}, part{"room", a.book, a.cancel},
		part{"mail", a.ask, nil}, part{"approval", approved, nil}, part{"payment", a.pay, nil})
}

// saga does its parts one after the other, each one as a step. Once one is refused, it undoes those before, the
// last one first. The refusal is on record too: no later attempt gets another answer while half of it is undone.
func saga(ctx context.Context, parts ...part) error {
	info, _ := workers.InfoFrom(ctx)
	step := func(name, of string, do call) (string, error) {
		return futures.Step(ctx, name, func(ctx context.Context) (string, error) {
			return do(ctx, of+" of "+info.ID.String())
		}, futures.StepRetries(5, time.Second, time.Minute))
	}
	for i, p := range parts {
		refused, err := step(p.name, p.name, p.do)
		for i--; err == nil && refused != "" && i >= 0; i-- {
			if done := parts[i]; done.undo != nil {
				_, err = step("undo "+done.name, done.name, done.undo)
			}
		}
		if err == nil && refused != "" {
			err = workers.Permanent(fmt.Errorf("%s: %s", p.name, refused))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// approval is the promise of a trip: the same one in each step and attempt.
func approval(ctx context.Context) (*futures.Client, *futures.Promise[bool], error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, _ := workers.InfoFrom(ctx)
	p, err := futures.NewPromise[bool](ctx, client, futures.Key("approval of "+info.ID.String()),
		futures.Label("A trip"), futures.Expires(72*time.Hour))
	return client, p, err
}

// approved waits for days if need be, without a slot.
func approved(ctx context.Context, _ string) (refused string, err error) {
	_, p, err := approval(ctx)
	if err != nil {
		return "", err
	}
	ok, err := p.Await(ctx)
	if failed := (*futures.FailedError)(nil); errors.As(err, &failed) {
		return failed.Message, nil
	} else if err == nil && !ok {
		refused = "no"
	}
	return refused, err
}
