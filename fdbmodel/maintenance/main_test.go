package maintenance_test

import (
	"testing"

	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
