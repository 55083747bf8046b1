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
	require.Equal(t, `Hello Ada!
-250 at 85-150, +250 at 43-812
there is no account 99-000: the money is back at 85-150
`, out.String())
}

// TestARefundIsOfWhatWasRefused has the bank fail now and then, and a first attempt fail behind the refusal: the
// deposit is not tried again, although the account is there by then.
func TestARefundIsOfWhatWasRefused(t *testing.T) {
	t.Parallel()
	cluster, b, tried := futurestest.New(t), newBank(), 0
	cluster.Register(transfer.Bind(func(ctx context.Context, of Transfer) (string, error) {
		text, err := moneyTransfer(ctx, b, of)
		if tried++; tried == 1 {
			b.accounts["99-000"] = 0
			return "", errors.New("it breaks behind the refund")
		}
		return text, err
	}))
	_, err := transfer.Call(t.Context(), cluster.Client, Transfer{"85-150", "99-000", 250, "7"})
	require.ErrorContains(t, err, "the money is back at 85-150")
	require.Equal(t, map[string]int{"85-150": 2000, "43-812": 0, "99-000": 0}, b.accounts)
	require.Equal(t, 2, tried)
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
