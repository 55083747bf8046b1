// Package signal wakes a goroutine over a channel with room for one value.
package signal

// Send wakes a goroutine that receives from c, now or when it next does. What was sent before and is not
// received yet stands for both.
func Send(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
