package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	yaml3 "go.yaml.in/yaml/v3"

	"github.com/futura-run/futura/internal/trust"
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

// aliases are keys that b7s has for flags of head, and longer names of --retries.
func aliases() map[string]string {
	return map[string]string{
		"submit.max-retries":          "submit.retries",
		"actor.call.max-retries":      "actor.call.retries",
		"tasks.submit.max-retries":    "tasks.submit.retries",
		"schedule.add.max-retries":    "schedule.add.retries",
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
	if err := a.loadSettings(cmd); err != nil {
		return err
	}
	if cluster := cmd.Flag("cluster"); cluster != nil && cluster.Changed && cluster.Value.String() == "" {
		return usageError{errors.New("--cluster is empty: leave it out for the cluster default, or name one")}
	}
	return checkDurations(cmd)
}

// explains reports whether a command only tells about commands: it does so beside a broken file of settings.
func explains(cmd *cobra.Command) bool {
	first, _, _ := strings.Cut(section(cmd), ".")
	return cmd.HasSubCommands() || slices.Contains([]string{
		"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd,
	}, first)
}

// checkDurations refuses negative durations, which no flag has a meaning for.
func checkDurations(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "duration" && strings.HasPrefix(f.Value.String(), "-") {
			err = usageError{fmt.Errorf("--%s %s is negative: use a duration such as 90s or 1h30m", f.Name, f.Value)}
		}
	})
	return err
}

// loadSettings is configure without the check.
func (a *app) loadSettings(cmd *cobra.Command) error {
	known := settings(cmd.Root())
	k := koanf.New(".")
	name, named := a.configName(cmd)
	if err := k.Load(file.Provider(name), plainYAML{yaml.Parser()}); err != nil {
		if named || !errors.Is(err, fs.ErrNotExist) {
			return usageError{fmt.Errorf("configuration %s: %w", name, err)}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.All())) {
		if known[key] == nil {
			return usageError{fmt.Errorf("configuration %s: there is no setting %q: use a flag's name, such as store, or "+
				"dev.listen for a flag of dev", name, key)}
		}
		if !named && !isHarmless(known[key]) {
			return usageError{fmt.Errorf("configuration %s: %s may not be set by a file that merely lies in the working "+
				"directory: if the file is yours, pass --config %[1]s, or set FUTURA_CONFIG=%[1]s", name, key)}
		}
		if hasPassword(k.Get(key)) {
			if err := trust.Secret(name); err != nil {
				return usageError{fmt.Errorf("configuration %s: %s has a password: %w", name, key, err)}
			}
		}
	}
	warnOfMisspelt(cmd, os.Environ(), known)
	for _, key := range slices.Sorted(maps.Keys(known)) {
		flag := known[key]
		mine := !strings.Contains(key, ".") || key == section(cmd)+"."+flag.Name ||
			aliases()[key] == section(cmd)+"."+flag.Name
		value := k.Get(key)
		if v := os.Getenv(envName(key)); v != "" {
			value = v
		} else if mine && isSet(cmd.Flags(), flag.Name) { // by another of its names
			continue
		}
		// cluster is the name of one, and has the flags of cluster set.
		below, isSection := value.(map[string]any)
		if !mine || flag.Changed || value == nil || isSection && len(below) > 0 {
			continue
		}
		if err := setFlag(flag, value); err != nil {
			return usageError{fmt.Errorf("setting %s (in %s, or %s): %w", key, name, envName(key), err)}
		}
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[bySetting] = nil
	}
	return nil
}

// plainYAML reads a file of settings, in which times and dates are texts, as flags take them.
type plainYAML struct{ *yaml.YAML }

// Unmarshal implements koanf.Parser.
func (plainYAML) Unmarshal(content []byte) (found map[string]any, err error) {
	var root yaml3.Node
	if err = yaml3.Unmarshal(content, &root); err == nil && !root.IsZero() {
		timesAsTexts(&root)
		err = root.Decode(&found)
	}
	return found, err
}

func timesAsTexts(n *yaml3.Node) {
	if n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, below := range n.Content {
		timesAsTexts(below)
	}
}

// bySetting is the annotation of a flag that the environment or a file has set.
const bySetting = "futura_setting"

// isSet reports whether a flag is set, wherever. Changed is for what flags exclude each other: it is true for
// the command line alone, as a setting is meant for all calls.
func isSet(flags *pflag.FlagSet, name string) bool {
	flag := flags.Lookup(name)
	_, is := flag.Annotations[bySetting]
	return is || flag.Changed
}

// isHarmless reports whether a file that was not named may set a flag. Such a
// file comes with any directory that was downloaded: it may tune a command, and
// not say where it reads, writes and connects to, or whom it lets in.
func isHarmless(flag *pflag.Flag) bool {
	switch flag.Value.Type() {
	case "int", "int64", "uint64", "uint8", "float64", "duration":
		return true
	}
	return slices.Contains([]string{
		"cluster", "json", "verbose", "access-log", "listen", "rest-api", "name", "queue", "label", "wait", "ndjson",
		"skip-header", "all", "codec", "format", "batch-store",
	}, flag.Name)
}

// urlPassword is the password of a URL, with what surrounds it.
var urlPassword = regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@`)

// hasPassword reports whether a value contains a URL with a password.
func hasPassword(value any) bool { return urlPassword.MatchString(fmt.Sprint(value)) }

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
