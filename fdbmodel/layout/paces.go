package layout

import "time"

// maxGap is the longest time between two starts at one pace.
const maxGap = 24 * time.Hour

// Gap is the time between two starts: at most a day.
func (p *Pace) Gap() time.Duration {
	return time.Duration(min(float64(time.Second)/p.PerSecond, float64(maxGap)))
}
