package peerworker

import "time"

// Kinds of transfers.
const (
	TransferModule = "module" // of a head
	TransferResult = "result" // to a head
)

// Transfer is a large value on its way between a worker and a head.
type Transfer struct {
	// What is TransferModule or TransferResult.
	What string
	// Content is its content id.
	Content string
	// Head is the id of the head.
	Head string
	// Done of Total bytes have come, or gone.
	Done, Total int64
}

// transferReport is how often the progress of a long one is in the log.
const transferReport = 5 * time.Second

// transferring returns what is told how far a transfer is.
func (w *Worker) transferring(what string, name blobName) func(done, total int64) {
	clk := w.options.clock
	due := clk.Now().Add(transferReport)
	return func(done, total int64) {
		if w.options.Transfers != nil {
			w.options.Transfers(Transfer{what, name.id, name.head, done, total})
		}
		if now := clk.Now(); !now.Before(due) {
			w.log.Info("a "+what+" is on its way", "content", name.id, "head", name.head, "bytes", done, "of", total)
			due = now.Add(transferReport)
		}
	}
}
