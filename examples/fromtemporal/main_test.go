package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/futurestest"
)

func TestFromTemporal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "embedded:"+t.TempDir(), &out))
	require.Equal(t, "Hello Ada!\n", out.String())
}

// TestStepsRunOnce has the function that calls a step fail behind it: the second
// attempt finds the step's result.
func TestStepsRunOnce(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	greeted, tried := 0, 0
	cluster.Register(greeting.Bind(func(ctx context.Context, name string) (string, error) {
		greeted++
		return greet(ctx, name)
	}))
	cluster.Register(welcome.Bind(func(ctx context.Context, name string) (string, error) {
		text, err := welcomeUser(ctx, name)
		if tried++; tried == 1 {
			return "", errors.New("it breaks behind the step")
		}
		return text, err
	}))
	text, err := welcome.Call(t.Context(), cluster.Client, "Ada")
	require.NoError(t, err)
	require.Equal(t, "Hello Ada!", text)
	require.Equal(t, 1, greeted)
	require.Equal(t, 2, tried)
}
