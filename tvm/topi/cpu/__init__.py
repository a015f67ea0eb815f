"""What schedules for processors share, x86 and AArch64 alike: costs of tiles, and the constants behind them."""
