package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configFile is read where the command runs, if it is there.
const configFile = "futura.yaml"

// configFlag names another file.
const configFlag = "config"

// section is the key of a command's flags in the file: "function put" has
// function.put. The flags that all commands have are at the top.
func section(cmd *cobra.Command) string {
	_, below, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.ReplaceAll(below, " ", ".")
}

// settings are all flags of all commands by their keys.
func settings(root *cobra.Command) map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != configFlag {
			all[f.Name] = f
		}
	})
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != "version" {
				all[section(cmd)+"."+f.Name] = f
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	for _, sub := range root.Commands() {
		visit(sub)
	}
	for alias, key := range aliases() {
		all[alias] = all[key]
	}
	return all
}

// aliases are keys that b7s has for flags of head.
func aliases() map[string]string {
	return map[string]string{
		"head.batch.server":           "head.batch-db-server",
		"head.batch.db-name":          "head.batch-db-name",
		"head.batch.requeue-interval": "head.batch-requeue-interval",
	}
}

// envName is the variable of a key: dev.token-file has FUTURA_DEV_TOKEN_FILE.
func envName(key string) string {
	return "FUTURA_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// configure sets the flags of cmd that the command line leaves out: from the
// environment, or else from the file. A file with a key that is no setting is
// an error.
func (a *app) configure(cmd *cobra.Command) error {
	known := settings(cmd.Root())
	k := koanf.New(".")
	name, named := a.configName(cmd)
	if err := k.Load(file.Provider(name), yaml.Parser()); err != nil {
		if named || !errors.Is(err, fs.ErrNotExist) {
			return usageError{fmt.Errorf("configuration %s: %w", name, err)}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.All())) {
		if known[key] == nil {
			return usageError{fmt.Errorf("configuration %s: there is no setting %q: use a flag's name, such as store, or "+
				"dev.listen for a flag of dev", name, key)}
		}
	}
	variables := map[string]string{}
	for key := range known {
		variables[envName(key)] = key
	}
	err := k.Load(env.Provider(".", env.Opt{
		Prefix: "FUTURA_",
		TransformFunc: func(name, value string) (string, any) {
			if value == "" {
				return "", nil
			}
			return variables[name], value
		},
	}), nil)
	if err != nil {
		return usageError{fmt.Errorf("environment: %w", err)}
	}
	for key, flag := range known {
		mine := !strings.Contains(key, ".") || key == section(cmd)+"."+flag.Name ||
			aliases()[key] == section(cmd)+"."+flag.Name
		if !mine || flag.Changed || !k.Exists(key) {
			continue
		}
		if err := setFlag(flag, k.Get(key)); err != nil {
			return usageError{fmt.Errorf("setting %s (in %s, or %s): %w", key, name, envName(key), err)}
		}
	}
	return nil
}

// configName returns the file and whether it was asked for.
func (a *app) configName(cmd *cobra.Command) (name string, named bool) {
	if f := cmd.Root().PersistentFlags().Lookup(configFlag); f.Changed {
		return f.Value.String(), true
	}
	if v := os.Getenv(envName(configFlag)); v != "" {
		return v, true
	}
	return configFile, false
}

// setFlag gives a flag its value without making it one of the command line.
func setFlag(flag *pflag.Flag, value any) error {
	list, several := flag.Value.(pflag.SliceValue)
	switch v := value.(type) {
	case []any:
		if !several {
			return fmt.Errorf("%v: one value is expected, not a list", v)
		}
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = fmt.Sprint(v[i])
		}
		return list.Replace(texts)
	case map[string]any:
		return fmt.Errorf("%v: a value is expected, not a section", v)
	default:
		if several {
			return list.Replace(strings.Split(fmt.Sprint(v), ","))
		}
		return flag.Value.Set(fmt.Sprint(v))
	}
}
