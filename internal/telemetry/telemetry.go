// Package telemetry sets up the SDK of OpenTelemetry for traces, as its standard environment
// variables say.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/ratelog"
)

// Options of Start.
type Options struct {
	// Getenv returns variables of the environment, os.Getenv for those of the process. The SDK
	// reads some by itself: limits of spans and of batches, and attributes of the resource.
	Getenv func(name string) string
	// Service and Version are those of the program: OTEL_SERVICE_NAME comes before the former.
	Service, Version string
	// Console is where the exporter console writes.
	Console io.Writer
	// Logger is told of spans that could not be exported.
	Logger *slog.Logger
}

// Provider makes tracers.
type Provider struct {
	*sdk.TracerProvider
	rare *ratelog.Log
}

// closeTime bounds the export of the last spans.
const closeTime = 5 * time.Second

// Start returns nil if the environment names no exporter, or disables the SDK: then nothing
// is set up. It returns an error that names the variable for a value that can't be used.
func Start(ctx context.Context, o Options) (*Provider, error) {
	names := exporters(o.Getenv)
	if len(names) == 0 {
		return nil, nil
	}
	sampler, err := samplerOf(o.Getenv)
	if err = errors.Join(err, checkBounds(o.Getenv)); err != nil {
		return nil, err
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := &Provider{rare: ratelog.New(o.Logger, clock.Real{})}
	options := []sdk.TracerProviderOption{sdk.WithResource(described), sdk.WithSampler(sampler)}
	for _, name := range names {
		e, err := newExporter(ctx, name, &o)
		if err != nil {
			return nil, err
		}
		options = append(options, sdk.WithBatcher(exporter{e, p.rare}))
	}
	p.TracerProvider = sdk.NewTracerProvider(options...)
	return p, nil
}

// exporters are the names of those that the environment asks for. Without a name, an endpoint
// asks for OTLP.
func exporters(getenv func(string) string) []string {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	named := getenv("OTEL_TRACES_EXPORTER")
	if named == "" && (getenv(otlpEndpoint) != "" || getenv(tracesEndpoint) != "") {
		named = "otlp"
	}
	names := strings.FieldsFunc(named, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "none" })
}

// maxBound is the largest bound of the batches that the SDK sends, in spans or milliseconds.
const maxBound = 1_000_000

// checkBounds refuses bounds that the SDK would run into, or replace without a word.
func checkBounds(getenv func(string) string) error {
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY",
		"OTEL_BSP_EXPORT_TIMEOUT"} {
		if text := getenv(name); text != "" {
			if n, err := strconv.Atoi(text); err != nil || n < 1 || n > maxBound {
				return fmt.Errorf("%s %.40q: use a number from 1 to %d", name, text, maxBound)
			}
		}
	}
	return nil
}

func newExporter(ctx context.Context, name string, o *Options) (sdk.SpanExporter, error) {
	switch name {
	case "otlp":
		c, err := newClient(o.Getenv)
		if err != nil {
			return nil, err
		}
		return otlptrace.New(ctx, c)
	case "console":
		return stdouttrace.New(stdouttrace.WithWriter(o.Console))
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER %.40q: use otlp, console or none", name)
	}
}

// Close exports the spans that have ended, for at most 5 s, and ends the exporters. A nil
// Provider has none.
func (p *Provider) Close() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		p.rare.Warn(notExported, "error", err)
	}
	p.rare.Close()
}

const notExported = "spans were not exported: see OTEL_EXPORTER_OTLP_ENDPOINT"

// exporter logs failures, which the SDK would pass to a handler of the whole process.
type exporter struct {
	sdk.SpanExporter
	rare *ratelog.Log
}

// ExportSpans implements sdk.SpanExporter.
func (e exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.rare.Warn(notExported, "spans", len(spans), "error", err)
	}
	return nil
}

// MarshalLog is what the SDK logs of it.
func (e exporter) MarshalLog() any { return "exporter" }

var errSampler = errors.New("use always_on, always_off, traceidratio, or one of these with parentbased_ before it")

// samplerOf is the sampler that the environment asks for, parentbased_always_on by default. One
// that heeds parents heeds links as well: an attempt is sampled if the creation of its future
// was, although it is a trace of its own.
func samplerOf(getenv func(string) string) (sdk.Sampler, error) {
	name := cmp.Or(getenv("OTEL_TRACES_SAMPLER"), "parentbased_always_on")
	base, heeds := strings.CutPrefix(name, "parentbased_")
	var root sdk.Sampler
	switch base {
	case "always_on":
		root = sdk.AlwaysSample()
	case "always_off":
		root = sdk.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if text := getenv("OTEL_TRACES_SAMPLER_ARG"); text != "" {
			var err error
			if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG %.40q: use a number from 0 to 1", text)
			}
		}
		root = sdk.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER %.40q: %w", name, errSampler)
	}
	if !heeds {
		return root, nil
	}
	return sdk.ParentBased(linked{root}), nil
}

// linked samples roots with links as these are, and others by another sampler.
type linked struct{ sdk.Sampler }

// ShouldSample implements sdk.Sampler.
func (s linked) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if len(p.Links) == 0 {
		return s.Sampler.ShouldSample(p)
	}
	for _, l := range p.Links {
		if l.SpanContext.IsSampled() {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return sdk.NeverSample().ShouldSample(p)
}
