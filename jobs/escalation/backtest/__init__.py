"""`turntide alerts backtest`: policies side by side over traffic that is known, before anybody is paged by them."""
