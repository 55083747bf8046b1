package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

func (a *app) tokenCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "token", Short: "Create, list and revoke tokens for HTTP requests",
		Long: "token keeps a file of named tokens that dev, serve and head read. The file contains no secrets, only their " +
			"SHA-256; the names appear in the access log. A running server reads a changed file within a second.",
		Example: "  futura token create ci --role submit --expires 720h\n  futura token list\n  futura token revoke ci",
	}
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "the file of tokens (default: DIR/tokens of an embedded store)")
	cmd.AddCommand(a.tokenCreateCommand(&file), a.tokenListCommand(&file), a.tokenRevokeCommand(&file))
	return needsCommand(cmd)
}

// tokensPath is the file of named tokens.
func (a *app) tokensPath(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	dir, ok := embeddedDir(a.store)
	if !ok {
		return "", usageError{fmt.Errorf("%s has no directory: name a file with --tokens", a.store)}
	}
	return filepath.Join(dir, namedTokensFile), storeExists(a.store)
}

func (a *app) tokenCreateCommand(file *string) *cobra.Command {
	var role string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token and print its secret",
		Long: "create makes a token and prints its secret, once: it is stored nowhere. The role read may see everything, " +
			"submit may also create, cancel and retry, admin may also install and delete.",
		Example: "  futura token create ci --role submit --expires 720h\n" +
			"  futura token create dashboard --role read --tokens tokens", Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.tokensPath(*file)
			if err != nil {
				return err
			}
			var until time.Time
			if expires < 0 {
				return usageError{fmt.Errorf("--expires %v: use a duration such as 720h, or 0 for never", expires)}
			} else if expires > 0 {
				until = time.Now().Add(expires)
			}
			secret, err := stack.CreateToken(path, args[0], role, until)
			if err != nil {
				return tokenError(err)
			}
			return a.say(map[string]string{"name": args[0], "role": role, "token": secret}, secret)
		},
	}
	cmd.Flags().StringVar(&role, "role", stack.Submit.String(), "what it may do: read, submit or admin")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long it is valid (default: forever)")
	return cmd
}

func (a *app) tokenListCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens, without their secrets", Args: exactly(0),
		Example: "  futura token list\n  futura token list --tokens tokens --json",
		RunE: func(*cobra.Command, []string) error {
			path, err := a.tokensPath(*file)
			if err != nil {
				return err
			}
			tokens, err := stack.ListTokens(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return tokenError(err)
			}
			view := func(t *stack.Token) stack.TokenView { return t.View(time.Now()) }
			return showAll(a, "tokens", tokens, view, []string{"NAME", "ROLE", "EXPIRES"}, func(t *stack.Token) []string {
				if t.Expires.IsZero() {
					return []string{t.Name, t.Role.String(), "never"}
				}
				return []string{t.Name, t.Role.String(), t.Expires.Format(time.RFC3339)}
			})
		},
	}
}

func (a *app) tokenRevokeCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Remove a token: servers refuse it within a second", Args: exactly(1),
		Example: "  futura token revoke ci",
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.tokensPath(*file)
			if err != nil {
				return err
			}
			err = stack.RevokeToken(path, args[0])
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %s: there are no named tokens, %w", stack.ErrNoToken, args[0], err)
			}
			return a.done(tokenError(err), "revoked", "name", args[0])
		},
	}
}

// tokenError makes what is wrong with a call its caller's mistake.
func tokenError(err error) error {
	if errors.Is(err, stack.ErrTokenExists) || errors.Is(err, stack.ErrBadTokens) {
		return usageError{err}
	}
	return err
}
