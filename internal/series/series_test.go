package series_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/series"
)

// TestFiguresAreReadForEachScrape serves figures of each kind, with labels of the set and of one metric.
func TestFiguresAreReadForEachScrape(t *testing.T) {
	t.Parallel()
	type figures struct {
		rooms, guests int64
		warmth        float64
	}
	set := series.New[figures]("inn_", prometheus.Labels{"street": "high"})
	set.Gauge("rooms", "Rooms.", func(f *figures) int64 { return f.rooms })
	set.Add(prometheus.GaugeValue, "warmth", "Warmth.", nil, func(f *figures) float64 { return f.warmth })
	set.CountOf(prometheus.Labels{"of": "summer"}, "guests_total", "Guests.", func(f *figures) int64 { return f.guests })
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weather", Help: "Weather."})
	now := figures{rooms: 3, warmth: 20.5}
	c := set.Collector(func() figures { return now }, other)
	now.guests = 7
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			text := fmt.Sprintf("%s %v %s", f.GetType(), value, f.GetName())
			for _, l := range m.GetLabel() {
				text += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			got = append(got, text)
		}
	}
	require.Equal(t, []string{
		"COUNTER 7 inn_guests_total of=summer street=high", "GAUGE 3 inn_rooms street=high",
		"GAUGE 20.5 inn_warmth street=high", "GAUGE 0 weather",
	}, got)
}
