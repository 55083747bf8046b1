package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/rest"
)

func (a *app) batchChunksCommand() *cobra.Command {
	var page pageFlags
	cmd := a.oneBatch(&cobra.Command{
		Use: "chunks ID", Short: "List what each worker was given of a batch",
		Long: "chunks lists the chunks of a batch in the order of their creation: the worker, or the peer id of one that " +
			"is connected to a head, how many items it was given, how many of them went back because it was lost or " +
			"left (LOST), how many more went to others before it had begun them (MOVED), and since when.",
		Example: "  futura batch chunks ID\n  futura batch chunks ID --limit 500 --json",
	}, func(cmd *cobra.Command, c *headClient, id string) error {
		return printAnswer(a, cmd, c, http.MethodGet, batchesPath+"/"+id+"/chunks"+page.query(), nil, chunkRows)
	})
	page.add(cmd.Flags())
	return cmd
}

func chunkRows(list *rest.ChunkList) [][]string {
	rows := [][]string{{"ID", "PEER", "STATE", "ITEMS", "LOST", "MOVED", "CREATED", "FINISHED"}}
	for _, c := range list.Chunks {
		finished := "-"
		if c.FinishedAt != nil {
			finished = c.FinishedAt.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{
			c.ID, c.Peer, c.State, strconv.Itoa(c.Items), strconv.Itoa(c.Lost), strconv.Itoa(c.Moved),
			c.CreatedAt.UTC().Format(time.RFC3339), finished,
		})
	}
	return withMore(rows, list.Next)
}
