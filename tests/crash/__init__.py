"""Kill the engine again and again while others write, then prove that nothing acknowledged is lost or half done."""
