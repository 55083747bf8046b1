package ferrettest

import (
	"flag"
	"log"
	"os"
	"testing"
)

// TestMain makes the programs of calls few: the server reads a whole collection
// to change one document.
func TestMain(m *testing.M) {
	if os.Getenv(headServer) != "" {
		log.Fatal(headMain())
	}
	flag.Parse()
	if os.Getenv("FUTURA_LONG") != "1" {
		for name, value := range map[string]string{"rapid.checks": "12", "rapid.steps": "20"} {
			if err := flag.Set(name, value); err != nil {
				log.Fatal(err)
			}
		}
	}
	os.Exit(m.Run())
}
